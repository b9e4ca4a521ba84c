// fp8_quantize_groups: codes of E4M3 or E5M2 with a scale for each 128 columns of a row, or for
// each block of 128 rows of them, made by the largest magnitude there, in one pass.
#pragma once

#include "common/grid_dependency.cuh"
#include "common/warp.cuh"
#include "fp8/quantize_piece.cuh"
#include "fp8/quantize_scales.h"
#include "fp8/scale.h"

namespace jitney {

template <class C>
struct Fp8QuantizeGroups {
    using Piece = Fp8Piece<C::format, C::out>;
    using T = typename Piece::T;
    static constexpr int kRows = Piece::kRows;
    static constexpr bool kBlocks = C::scale_rows != 1;
    static constexpr int kThreads = fp8_group_threads(C::scale_rows);
    static_assert(kRows == 4 && kFp8ScaleLanes == 16);  // as largest_of_rows has it
    static_assert(!kBlocks || C::scale_rows == fp8_group_tile_rows(C::scale_rows));

    const Fp8ScalesParams& params;
    long long tile_down;
    long long tile_across;
    long long row;  // where the thread's part begins
    long long col;

    JITNEY_DEVICE explicit Fp8QuantizeGroups(const Fp8ScalesParams& p) : params(p) {
        const int thread = static_cast<int>(threadIdx.x);
        const int tile = static_cast<int>(blockIdx.x);
        const int down = tile / params.tiles_across;
        tile_down = down;
        tile_across = tile - down * params.tiles_across;
        row = tile_down * fp8_group_tile_rows(C::scale_rows) + thread / kFp8ScaleLanes * kRows;
        col = tile_across * kFp8ScaleCols + thread % kFp8ScaleLanes * Piece::kCols;
    }

    JITNEY_DEVICE float multiplier_of(unsigned largest) const {
        return dynamic_fp8_multiplier(__uint_as_float(largest), params.largest,
                                      params.power_of_two != 0);
    }

    // The largest of each row over the 16 lanes of its group, whose lane l has that of row l % 4:
    // in the first two steps a lane gives away half of what it holds.
    JITNEY_DEVICE static unsigned largest_of_rows(const unsigned (&of)[kRows]) {
        const unsigned lane = threadIdx.x;
        const auto give = [](bool upper, unsigned low, unsigned high, int step) {
            const unsigned got = __shfl_xor_sync(kAllLanes, upper ? low : high, step);
            return max(upper ? high : low, got);
        };
        const bool odd = (lane & 1) != 0;
        const unsigned low = give(odd, of[0], of[1], 1);
        const unsigned high = give(odd, of[2], of[3], 1);
        unsigned largest = give((lane & 2) != 0, low, high, 2);
        largest = max(largest, __shfl_xor_sync(kAllLanes, largest, 4));
        return max(largest, __shfl_xor_sync(kAllLanes, largest, 8));
    }

    // Each group's multiplier is made by the lane that has its largest, so that a thread makes one
    // and not four.
    JITNEY_DEVICE void scale_groups(const unsigned (&of)[kRows],
                                    float (&multipliers)[kRows]) const {
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        const float multiplier = multiplier_of(largest_of_rows(of));
        const long long scaled_row = row + lane % kRows;
        if (lane % kFp8ScaleLanes < kRows && scaled_row < params.rows) {
            params.scales[scaled_row * params.scales_down + tile_across * params.scales_across] =
                fp8_scale(multiplier);
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i)
            multipliers[i] =
                __shfl_sync(kAllLanes, multiplier, lane / kFp8ScaleLanes * kFp8ScaleLanes + i);
    }

    JITNEY_DEVICE void scale_block(const unsigned (&of)[kRows], float (&multipliers)[kRows]) const {
        unsigned* const warps = reinterpret_cast<unsigned*>(shared_memory());
        keep_warp_max(max(max(of[0], of[1]), max(of[2], of[3])), warps);
        __syncthreads();
        const float multiplier = multiplier_of(max_of_warps<kThreads>(warps));
        if (threadIdx.x == 0) {
            params.scales[tile_down * params.scales_down + tile_across * params.scales_across] =
                fp8_scale(multiplier);
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i)
            multipliers[i] = multiplier;
    }

    JITNEY_DEVICE void run() const {
        release_next_grid();
        const bool whole = row + kRows <= params.rows && col + Piece::kCols <= params.cols;
        const auto ends = [this](int i) { return row + i < params.rows ? params.cols - col : 0; };
        const T* const from = static_cast<const T*>(params.x) + row * params.x_stride + col;
        wait_for_previous_grid();
        typename Piece::Row x[kRows];
        if (whole && params.wide_x != 0) {
            Piece::template load<true>(from, params.x_stride, ends, x);
        } else {
            Piece::template load<false>(from, params.x_stride, ends, x);
        }
        unsigned largest[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
            largest[i] = Piece::largest_of(x[i]);
        float multipliers[kRows];
        if constexpr (kBlocks) {
            scale_block(largest, multipliers);
        } else {
            scale_groups(largest, multipliers);
        }
        typename Piece::Codes codes[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
            codes[i] = Piece::codes_of(x[i], multipliers[i]);
        Piece::store(params.codes + row * params.codes_stride + col, params.codes_stride,
                     whole && params.wide_codes != 0, ends, codes);
    }
};

template <class C>
__global__ void __launch_bounds__(fp8_group_threads(C::scale_rows))
    fp8_quantize_groups(const __grid_constant__ Fp8ScalesParams params) {
    Fp8QuantizeGroups<C>{params}.run();
}

}  // namespace jitney
