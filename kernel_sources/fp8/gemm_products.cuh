// A warp's products: c += a * b over 32 of K.
#pragma once

#include "common/fp8_mma.cuh"
#include "common/mma.cuh"
#include "fp8/gemm_fragments.cuh"

namespace jitney {

template <class C, int fragments_m, int fragments_n>
struct Fp8Products {
    float c[fragments_m][2 * fragments_n][4];

    JITNEY_DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < fragments_m; ++i)
#pragma unroll
            for (int j = 0; j < 2 * fragments_n; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    c[i][j][e] = 0.0f;
    }

    JITNEY_DEVICE void add(const Fp8Products& other) {
#pragma unroll
        for (int i = 0; i < fragments_m; ++i)
#pragma unroll
            for (int j = 0; j < 2 * fragments_n; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    c[i][j][e] += other.c[i][j][e];
    }

    // As fp16, one of its halves of K: the order of k within a product is free, as long as it is
    // the same on both sides. Each fragment is unpacked once and serves the whole warp tile.
    template <bool upper>
    JITNEY_DEVICE void unpack_and_multiply(const Fp8Fragment (&a)[fragments_m],
                                           const Fp8Fragment (&b)[fragments_n]) {
        unsigned wide[fragments_m][4];
#pragma unroll
        for (int i = 0; i < fragments_m; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                wide[i][r] = fp8_unpack<C::a, upper>(a[i][r]);
#pragma unroll
        for (int j = 0; j < 2 * fragments_n; ++j) {
            const unsigned b0 = fp8_unpack<C::b, upper>(b[j / 2][j % 2]);
            const unsigned b1 = fp8_unpack<C::b, upper>(b[j / 2][2 + j % 2]);
#pragma unroll
            for (int i = 0; i < fragments_m; ++i)
                mma_m16n8k16<kFp16>(c[i][j], wide[i], b0, b1);
        }
    }

    JITNEY_DEVICE void multiply(const Fp8Fragment (&a)[fragments_m],
                                const Fp8Fragment (&b)[fragments_n]) {
        if constexpr (C::unpack != 0) {
            unpack_and_multiply<false>(a, b);
            unpack_and_multiply<true>(a, b);
        } else {
#pragma unroll
            for (int j = 0; j < 2 * fragments_n; ++j)
#pragma unroll
                for (int i = 0; i < fragments_m; ++i)
                    mma_m16n8k32<C::a, C::b>(c[i][j], a[i], b[j / 2][j % 2], b[j / 2][2 + j % 2]);
        }
    }
};

}  // namespace jitney
