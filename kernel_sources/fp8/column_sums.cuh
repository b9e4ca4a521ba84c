// column_sums: the sum of every column of a matrix, in fp32 and in an order that does not depend on
// chance; the gradient of a bias.
#pragma once

#include "common/arrival.cuh"
#include "common/element.cuh"
#include "common/grid_dependency.cuh"
#include "common/vector.cuh"
#include "fp8/column_sums_params.h"

namespace jitney {

template <class C>
struct ColumnSums {
    using T = Element<C::format>;
    static constexpr int kCols = kColumnSumsThreadCols;
    using Sums = Vector<float, kCols>;

    const ColumnSumsParams& params;

    JITNEY_DEVICE static int across() { return static_cast<int>(threadIdx.x) % kColumnSumsAcross; }
    JITNEY_DEVICE static int down() { return static_cast<int>(threadIdx.x) / kColumnSumsAcross; }

    JITNEY_DEVICE void add_row(Sums& sums, const T* from, int end) const {
        if (end >= kCols && params.wide != 0) {
            const auto x = load_vector<kCols>(from);
#pragma unroll
            for (int j = 0; j < kCols; ++j)
                sums.items[j] += x.items[j].value();
            return;
        }
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
            if (j < end) sums.items[j] += from[j].value();
        }
    }

    // The sums of one column of the block's rows, in the threads of its first 64.
    JITNEY_DEVICE float sum_rows(int first_col, long long first, long long end) const {
        const int col = first_col + across() * kCols;
        Sums sums{};
        const T* x = static_cast<const T*>(params.x);
#pragma unroll 4
        for (long long row = first + down(); row < end; row += kColumnSumsDown)
            add_row(sums, x + row * params.x_stride + col, params.cols - col);
        auto* shared = reinterpret_cast<float*>(shared_memory());
        store_vector(shared + down() * kColumnSumsCols + across() * kCols, sums);
        __syncthreads();  // all sums are there
        float sum = 0.0f;
        const int mine = static_cast<int>(threadIdx.x);
        if (mine < kColumnSumsCols) {
            for (int i = 0; i < kColumnSumsDown; ++i)
                sum += shared[i * kColumnSumsCols + mine];
        }
        return sum;
    }

    // True for all threads of the block that comes last to these columns.
    JITNEY_DEVICE bool is_last(int column_block) const {
        auto* flag = reinterpret_cast<unsigned*>(shared_memory() + kColumnSumsSharedBytes - 16);
        return arrive_last(params.arrived + column_block, static_cast<unsigned>(params.splits),
                           flag);
    }

    JITNEY_DEVICE void run() const {
        release_next_grid();
        wait_for_previous_grid();
        const int column_block = static_cast<int>(blockIdx.x) % params.column_blocks;
        const int split = static_cast<int>(blockIdx.x) / params.column_blocks;
        const int first_col = column_block * kColumnSumsCols;
        const long long first = split * params.rows_a_split;
        const long long end = min(params.rows, first + params.rows_a_split);
        float sum = sum_rows(first_col, first, end);
        const int col = first_col + static_cast<int>(threadIdx.x);
        const bool mine = static_cast<int>(threadIdx.x) < kColumnSumsCols && col < params.cols;
        if (params.splits > 1) {
            if (mine) params.parts[static_cast<long long>(split) * params.cols + col] = sum;
            if (!is_last(column_block)) return;
            sum = 0.0f;
            for (int i = 0; mine && i < params.splits; ++i)
                sum += params.parts[static_cast<long long>(i) * params.cols + col];
        }
        if (mine) static_cast<Element<C::out>*>(params.out)[col] = Element<C::out>::from(sum);
    }
};

template <class C>
__global__ void __launch_bounds__(kColumnSumsThreads)
    column_sums(const __grid_constant__ ColumnSumsParams params) {
    ColumnSums<C>{params}.run();
}

}  // namespace jitney
