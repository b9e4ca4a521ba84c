// The scales of A and B where fp8_gemm_mma has them apart: those of rows and columns, which come to
// the sums at the end, and those of blocks, which come to the sums of each block.
#pragma once

#include "common/warp.cuh"
#include "fp8/gemm_products.cuh"

namespace jitney {

// Of row `row` of A, times that of column `column` of B. What lies past the last has results that
// nobody sees.
JITNEY_DEVICE float fp8_side_scale(const Fp8GemmParams& params, int row, int column, int group) {
    const Fp8GemmScales& scales = params.scales;
    return scales.a[min(row, params.m - 1) * scales.a_row] *
           scales.b[min(column, params.n - 1) * scales.b_column + group * scales.b_group];
}

// Those of one block of K for a warp, whose columns lie in one block of B.
template <class C, int fragments_m, int fragments_n>
struct Fp8MmaBlockScales {
    using Products = Fp8Products<C, fragments_m, fragments_n>;

    const Fp8GemmParams& params;
    int first_m;  // of the warp
    int first_n;
    int group;
    bool exists = false;  // something of K, for which there are scales
    float of_rows[fragments_m][2];

    // The scales of the block that has this k. They are asked for before the products, and needed
    // behind them.
    JITNEY_DEVICE void load(int k) {
        exists = k < params.k;
        if (!exists) return;
        const Fp8GemmScales& scales = params.scales;
        const int block = k / kFp8ScaleBlock;
        const int column_block = min(first_n, params.n - 1) / kFp8ScaleBlock;
        const float of_columns = scales.b[block * scales.b_block + column_block * scales.b_column +
                                          group * scales.b_group];
        const float* const of_block = scales.a + block * scales.a_block;
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
        for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
            for (int upper = 0; upper < 2; ++upper) {
                const int row =
                    first_m + i * 16 + fp8_side_of<C::trans_a == 0>(lane / 4 + 8 * upper);
                of_rows[i][upper] = of_block[min(row, params.m - 1) * scales.a_row] * of_columns;
            }
        }
    }

    // Adds what the block's products came to.
    JITNEY_DEVICE void add(Products& sums, const Products& part) const {
        if (!exists) return;
#pragma unroll
        for (int i = 0; i < fragments_m; ++i)
#pragma unroll
            for (int j = 0; j < 2 * fragments_n; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums.c[i][j][e] += part.c[i][j][e] * of_rows[i][e / 2];
    }
};

}  // namespace jitney
