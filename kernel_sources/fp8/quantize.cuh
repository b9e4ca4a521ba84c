// fp8_quantize: x * multiplier as codes of E4M3 or E5M2, row by row, transposed or both, and the
// largest |x|, in one pass over x.
#pragma once

#include "common/amax.cuh"
#include "common/element.cuh"
#include "common/fp8.cuh"
#include "common/vector.cuh"
#include "fp8/quantize_params.h"
#include "fp8/scale.h"

namespace jitney {

template <class C>
struct Fp8Quantize {
    using T = Element<C::format>;
    using Codes = Vector<unsigned, 2>;  // of a row of a thread
    static constexpr int kRows = kFp8ThreadRows;
    static constexpr int kCols = kFp8ThreadCols;
    static constexpr bool kWritesRows = (C::codes & kRowCodes) != 0;
    static constexpr bool kTransposes = (C::codes & kTransposedCodes) != 0;
    static constexpr int kTransposedWords = kFp8TransposeRows / 4;  // of a column of the tile

    const Fp8QuantizeParams& params;

    // The thread's part of a tile: kRows rows from `row` on, of kCols elements from `col` on.
    struct Place {
        long long row;
        long long col;
        bool whole;  // all of it lies in the matrix
    };

    JITNEY_DEVICE int log2_across() const {
        return kTransposes ? kFp8TransposeLog2Across : params.log2_across;
    }
    JITNEY_DEVICE int column_group() const {
        return static_cast<int>(threadIdx.x) & ((1 << log2_across()) - 1);
    }
    JITNEY_DEVICE int row_group() const { return static_cast<int>(threadIdx.x) >> log2_across(); }

    JITNEY_DEVICE long long width(long long row) const {
        return row == params.rows - 1 ? params.last_cols : params.cols;
    }

    JITNEY_DEVICE long long tile_row(int tile) const {
        return static_cast<long long>(tile / params.tiles_across) * kRows *
               (kFp8QuantizeThreads >> log2_across());
    }
    JITNEY_DEVICE long long tile_col(int tile) const {
        return static_cast<long long>(tile % params.tiles_across) * kCols << log2_across();
    }

    JITNEY_DEVICE Place place_of(int tile) const {
        Place place;
        place.row = tile_row(tile) + row_group() * kRows;
        place.col = tile_col(tile) + column_group() * kCols;
        const long long last = place.row + kRows - 1;
        place.whole = last < params.rows && place.col + kCols <= width(last);
        return place;
    }

    // Elements outside the matrix are 0.
    JITNEY_DEVICE void load(const Place& place, Vector<T, kCols> (&x)[kRows]) const {
        const T* from = static_cast<const T*>(params.x) + place.row * params.x_stride + place.col;
        if (place.whole && params.wide_x != 0) {
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                x[i] = load_vector<kCols>(from + i * params.x_stride);
            return;
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const long long row = place.row + i;
            const long long end = row < params.rows ? width(row) - place.col : 0;
#pragma unroll
            for (int j = 0; j < kCols; ++j)
                x[i].items[j] = j < end ? from[i * params.x_stride + j] : T::from(0.0f);
        }
    }

    JITNEY_DEVICE static Codes codes_of(const Vector<T, kCols>& x, float multiplier) {
        Codes codes;
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            unsigned pairs[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const T* two = &x.items[4 * word + 2 * half];
                pairs[half] = fp8_pair<C::out, C::software != 0>(
                    __fmul_rn(two[0].value(), multiplier), __fmul_rn(two[1].value(), multiplier));
            }
            codes.items[word] = pairs[0] | pairs[1] << 16;
        }
        return codes;
    }

    JITNEY_DEVICE void store_rows(const Place& place, const Codes (&codes)[kRows]) const {
        unsigned char* to = params.codes + place.row * params.codes_stride + place.col;
        if (place.whole && params.wide_codes != 0) {
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                store_vector(reinterpret_cast<unsigned*>(to + i * params.codes_stride), codes[i]);
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const long long row = place.row + i;
            const long long end = row < params.rows ? width(row) - place.col : 0;
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
                if (j < end) {
                    to[i * params.codes_stride + j] =
                        static_cast<unsigned char>(codes[i].items[j / 4] >> 8 * (j % 4));
                }
            }
        }
    }

    // The tile in shared memory: a column's codes are neighbours, in chunks of 16 bytes that lie in
    // an order of the column's own, so that neither side meets bank conflicts.
    JITNEY_DEVICE static unsigned* column_chunk(int column, int chunk) {
        return reinterpret_cast<unsigned*>(shared_memory()) + column * kTransposedWords +
               (chunk ^ (column / kCols & 7)) * 4;
    }

    // Four rows of four codes as four columns of four.
    JITNEY_DEVICE void keep_transposed(const Codes (&codes)[kRows]) const {
        const int group = row_group();
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            const unsigned a = codes[0].items[word];
            const unsigned b = codes[1].items[word];
            const unsigned c = codes[2].items[word];
            const unsigned d = codes[3].items[word];
            const unsigned ab_low = __byte_perm(a, b, 0x5140);
            const unsigned cd_low = __byte_perm(c, d, 0x5140);
            const unsigned ab_high = __byte_perm(a, b, 0x7362);
            const unsigned cd_high = __byte_perm(c, d, 0x7362);
            const unsigned columns[4] = {
                __byte_perm(ab_low, cd_low, 0x5410), __byte_perm(ab_low, cd_low, 0x7632),
                __byte_perm(ab_high, cd_high, 0x5410), __byte_perm(ab_high, cd_high, 0x7632)};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = column_group() * kCols + 4 * word + j;
                column_chunk(column, group / 4)[group % 4] = columns[j];
            }
        }
    }

    JITNEY_DEVICE void store_transposed(int tile) const {
        constexpr int chunks = kFp8TransposeRows / 16;  // of a column
        const long long first_row = tile_row(tile);
        const long long first_col = tile_col(tile);
#pragma unroll
        for (int i = 0; i < kFp8TransposeCols * chunks / kFp8QuantizeThreads; ++i) {
            const int index = static_cast<int>(threadIdx.x) + i * kFp8QuantizeThreads;
            const int column = index / chunks;
            const int chunk = index % chunks;
            const long long row = first_row + 16 * chunk;
            if (first_col + column >= params.cols || row >= params.rows) continue;
            unsigned char* to =
                params.transposed + (first_col + column) * params.transposed_stride + row;
            const auto codes = load_vector<4>(column_chunk(column, chunk));
            if (row + 16 <= params.rows && params.wide_transposed != 0) {
                store_vector(reinterpret_cast<unsigned*>(to), codes);
                continue;
            }
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                if (row + j < params.rows)
                    to[j] = static_cast<unsigned char>(codes.items[j / 4] >> 8 * (j % 4));
            }
        }
    }

    JITNEY_DEVICE static unsigned largest_of(const Vector<T, kCols> (&x)[kRows]) {
        unsigned largest = 0;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kCols; ++j)
                largest = max(largest, magnitude_bits(x[i].items[j].value()));
        }
        return largest;
    }

    JITNEY_DEVICE static unsigned* warp_maxima() {
        return reinterpret_cast<unsigned*>(shared_memory() +
                                           fp8_quantize_shared_bytes(kTransposes, false));
    }

    // The first thread merges the block's amax with those of the others; the last block's has it.
    JITNEY_DEVICE void merge() const {
        if (threadIdx.x != 0) return;
        unsigned largest = max_of_warps<kFp8QuantizeThreads>(warp_maxima());
        if (!merge_amax(params.counters, largest, gridDim.x, largest)) return;
        const float amax = __uint_as_float(largest);
        if (params.amax != nullptr) *params.amax = amax;
        if (params.new_multiplier == nullptr) return;
        const float multiplier = dynamic_fp8_multiplier(amax, params.largest);
        *params.new_multiplier = multiplier;
        if (params.scale != nullptr) *params.scale = fp8_scale(multiplier);
    }

    // On the block's last tile amax is merged as soon as it is known: the atomics are on their way
    // while codes are made and stored.
    JITNEY_DEVICE void do_tile(int tile, float multiplier, unsigned& largest, bool last) const {
        const Place place = place_of(tile);
        Vector<T, kCols> x[kRows];
        load(place, x);
        if constexpr (C::amax != 0) {
            largest = max(largest, largest_of(x));
            if (last) keep_warp_max(largest, warp_maxima());
            if (last && !kTransposes) {
                __syncthreads();  // the warps' maxima are there
                merge();
            }
        }
        if constexpr (C::codes != kNoCodes) {
            Codes codes[kRows];
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                codes[i] = codes_of(x[i], multiplier);
            if constexpr (kWritesRows) store_rows(place, codes);
            if constexpr (kTransposes) {
                keep_transposed(codes);
                __syncthreads();  // the tile is there, and so are the warps' maxima
                if (C::amax != 0 && last) merge();
                store_transposed(tile);
            }
        }
    }

    JITNEY_DEVICE void run() const {
        const float multiplier = params.multiplier != nullptr ? *params.multiplier : 1.0f;
        if (C::codes != kNoCodes && params.scale != nullptr && blockIdx.x == 0 &&
            threadIdx.x == 0) {
            *params.scale = fp8_scale(multiplier);
        }
        unsigned largest = 0;
        const int step = static_cast<int>(gridDim.x);
        for (int tile = static_cast<int>(blockIdx.x); tile < params.tiles; tile += step) {
            if (kTransposes && tile != static_cast<int>(blockIdx.x)) {
                __syncthreads();  // nobody reads the tile before this one any more
            }
            do_tile(tile, multiplier, largest, tile + step >= params.tiles);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kFp8QuantizeThreads)
    fp8_quantize(const __grid_constant__ Fp8QuantizeParams params) {
    Fp8Quantize<C>{params}.run();
}

}  // namespace jitney
