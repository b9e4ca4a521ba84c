// From the tiles in shared memory to the registers of the tensor cores.
#pragma once

#include "common/ldmatrix.cuh"
#include "fp8/gemm_tiles.cuh"

namespace jitney {

// Sixteen rows of A, or columns of B, by 32 of K, as mma.m16n8k32 holds a: [lower eight, k 0..15],
// [upper eight, k 0..15], and the same of k 16..31. Of a transposed operand the lower eight are the
// even ones of the sixteen and the upper eight the odd ones: fp8_side_of says where a result is.
using Fp8Fragment = unsigned[4];

// Which of its sixteen neighbours row `row` of a product's sixteen is.
template <bool k_contiguous>
JITNEY_DEVICE constexpr int fp8_side_of(int row) {
    return k_contiguous ? row : row % 8 * 2 + row / 8;
}

// A warp's fragments of one operand, in `steps` steps of 32 k. A lane keeps the offsets of what
// varies with the places of chunks; all else are constants of the instruction.
template <class Tile, int fragments, int steps>
struct Fp8Fragments {
    static constexpr int kOffsets = Tile::kKContiguous ? steps : fragments;
    int offsets[kOffsets];

    // The warp's first row of A or column of B in the tile, and its first step.
    JITNEY_DEVICE Fp8Fragments(int first, int first_step) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if constexpr (Tile::kKContiguous) {
            const int row = first + lane % 16;
#pragma unroll
            for (int s = 0; s < kOffsets; ++s) {
                const int chunk = 2 * (first_step + s) + lane / 16;
                offsets[s] = Tile::place(row, chunk);
            }
        } else {
            // Two matrices of 8 k by 8 pairs make sixteen k: a lane then finds k 4t and 4t+1 in the
            // one and k 4t+2 and 4t+3 in the other.
            const int k = lane / 16 * 16 + lane % 8 / 2 * 4 + lane / 8 % 2 * 2 + lane % 2;
#pragma unroll
            for (int f = 0; f < kOffsets; ++f) {
                offsets[f] = Tile::place(first_step * 32 + k, first / 16 + f);
            }
        }
    }

    // Fragment f of the warp's step `step`.
    JITNEY_DEVICE void load(Fp8Fragment& fragment, SharedAddress tile, int step, int f) const {
        if constexpr (Tile::kKContiguous) {
            ldmatrix_x4(fragment, tile + static_cast<unsigned>(offsets[step]) +
                                      static_cast<unsigned>(f * 16 * Tile::kRowBytes));
        } else {
            unsigned pairs[4];
            ldmatrix_x4_transposed(pairs, tile + static_cast<unsigned>(offsets[f]) +
                                              static_cast<unsigned>(step * 32 * Tile::kRowBytes));
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned low = pairs[2 * half];
                const unsigned high = pairs[2 * half + 1];
                fragment[2 * half] = __byte_perm(low, high, 0x6420);
                fragment[2 * half + 1] = __byte_perm(low, high, 0x7531);
            }
        }
    }
};

}  // namespace jitney
