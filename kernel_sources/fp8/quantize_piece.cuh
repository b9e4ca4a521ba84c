// What a thread casts at once: neighbouring elements of some neighbouring rows, in registers.
#pragma once

#include "common/amax.cuh"
#include "common/element.cuh"
#include "common/fp8.cuh"
#include "common/vector.cuh"
#include "fp8/quantize_params.h"

namespace jitney {

// Elements of `format` become codes of `out`, bit by bit where `software` says so. Rows lie a
// stride apart; end_of(i) says how many elements from row i's first on lie in the matrix, which may
// be none.
template <int format, int out, bool software = false>
struct Fp8Piece {
    using T = Element<format>;
    using Codes = Vector<unsigned, 2>;  // of a row
    static constexpr int kRows = kFp8ThreadRows;
    static constexpr int kCols = kFp8ThreadCols;
    using Row = Vector<T, kCols>;

    // `wide`: all of it lies in the matrix, and 16 bytes can be moved at once. Else elements
    // outside the matrix are 0.
    template <bool wide, class Ends>
    JITNEY_DEVICE static void load(const T* from, long long stride, const Ends& end_of,
                                   Row (&x)[kRows]) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            if constexpr (wide) {
                x[i] = load_vector<kCols>(from + i * stride);
            } else {
                const long long end = end_of(i);
#pragma unroll
                for (int j = 0; j < kCols; ++j)
                    x[i].items[j] = j < end ? from[i * stride + j] : T::from(0.0f);
            }
        }
    }

    JITNEY_DEVICE static Codes codes_of(const Row& x, float multiplier) {
        Codes codes;
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            unsigned pairs[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const T* two = &x.items[4 * word + 2 * half];
                pairs[half] = fp8_pair<out, software>(__fmul_rn(two[0].value(), multiplier),
                                                      __fmul_rn(two[1].value(), multiplier));
            }
            codes.items[word] = pairs[0] | pairs[1] << 16;
        }
        return codes;
    }

    // `wide`: all of it lies in the matrix, and 8 codes can be moved at once.
    template <class Ends>
    JITNEY_DEVICE static void store(unsigned char* to, long long stride, bool wide,
                                    const Ends& end_of, const Codes (&codes)[kRows]) {
        if (wide) {
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                store_vector(reinterpret_cast<unsigned*>(to + i * stride), codes[i]);
            return;
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const long long end = end_of(i);
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
                if (j < end) {
                    to[i * stride + j] =
                        static_cast<unsigned char>(codes[i].items[j / 4] >> 8 * (j % 4));
                }
            }
        }
    }

    // The bits of the largest magnitude of a row.
    JITNEY_DEVICE static unsigned largest_of(const Row& x) {
        unsigned largest = 0;
#pragma unroll
        for (int j = 0; j < kCols; ++j)
            largest = max(largest, magnitude_bits(x.items[j].value()));
        return largest;
    }
};

}  // namespace jitney
