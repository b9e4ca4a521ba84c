// What one warp of attn_prefill_mma has of a tile of rows and keys, and what it does with its
// scores: maxima, weights, and the product with the values.
//
// Up to head_dim 128 a warp has its rows alone. Above, two share theirs, because the accumulators
// of more than 16 rows would not fit one warp's registers, and with 16 the fragments of K and V,
// read for so few rows, ask more of shared memory than it can give. Each side multiplies half of
// the keys and half of the head dimension. They agree on the maxima of their rows, and tell each
// other their weights.
#pragma once

#include "attention/prefill_memory.cuh"
#include "attention/softmax.cuh"
#include "attention/warp_mma.cuh"

namespace jitney {

template <class C>
struct PrefillWarp {
    using Memory = PrefillMemory<C>;
    using T = Element<C::format>;

    static constexpr int kSides = prefill_mma_sides(C::head_dim, C::tile_n);
    static constexpr int kRowBlocks = C::tile_m * kSides / (16 * kAttentionWarps);
    static constexpr int kRows = 16 * kRowBlocks;
    static constexpr int kSideKeys = C::tile_n / kSides;
    static constexpr int kKeyBlocks = kSideKeys / 8;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    // Where an odd number is divided, both sides have the step in the middle.
    static constexpr int kSideDimSteps = (kDimSteps + kSides - 1) / kSides;
    static constexpr int kDimBlocks = 2 * kSideDimSteps;

    using Fragments = unsigned[kRowBlocks][4];
    using Weights = Fragments[kKeyBlocks / 2];
    using Scores = float[kRowBlocks][kKeyBlocks][4];
    using Output = float[kRowBlocks][kDimBlocks][4];
    using RowStates = SoftmaxRows[kRowBlocks];

    int lane;
    int side;
    int first_row;  // of the warp's, in the tile

    JITNEY_DEVICE PrefillWarp() : lane(static_cast<int>(threadIdx.x) % 32) {
        const int warp = warp_index();
        side = warp % kSides;
        first_row = warp / kSides * kRows;
    }

    // The lane's row in the tile.
    JITNEY_DEVICE int lane_row(int block, int half) const {
        return first_row + block * 16 + half * 8 + lane / 4;
    }
    // The first of the lane's keys in the tile.
    JITNEY_DEVICE int lane_key() const { return side * kSideKeys + 2 * (lane % 4); }
    // The first step of the head dimension that this side multiplies.
    JITNEY_DEVICE int first_dim_step() const { return side * (kDimSteps - kSideDimSteps); }

    // Makes weights of scores, and adds them to the rows' sums, whose accumulators are scaled anew
    // where a maximum has risen; with two sides, theirs have agreed on the maxima then.
    JITNEY_DEVICE void softmax(Scores& scores, Output& out, RowStates& rows,
                               float scale_log2) const {
        if constexpr (kSides == 1) {
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block)
                online_softmax(scores[block], out[block], rows[block], scale_log2);
        } else {
            float maximum[kRowBlocks][2];
            bool rises = false;
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block)
                rises |= row_maxima(scores[block], rows[block], scale_log2, maximum[block]);
            if (__syncthreads_or(rises)) {
                tell(maximum);
                __syncthreads();
#pragma unroll
                for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
                    for (int half = 0; half < 2; ++half)
                        maximum[block][half] = fmaxf(maximum[block][half], told(block, half));
                    rescale_rows(maximum[block], out[block], rows[block], scale_log2);
                }
            }
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block)
                weigh_scores(scores[block], rows[block], scale_log2);
            tell_weights(scores);
        }
    }

    // A number of each of this side's rows for the other, and the other's. Barriers stand between.
    JITNEY_DEVICE void tell(const float (&values)[kRowBlocks][2]) const {
        if (lane % 4 != 0) return;
#pragma unroll
        for (int i = 0; i < 2 * kRowBlocks; ++i)
            *Memory::number(side, lane_row(i / 2, i % 2)) = values[i / 2][i % 2];
    }
    JITNEY_DEVICE float told(int block, int half) const {
        return *Memory::number(1 - side, lane_row(block, half));
    }

    JITNEY_DEVICE void tell_sums(const RowStates& rows) const {
        float sums[kRowBlocks][2];
#pragma unroll
        for (int i = 0; i < 2 * kRowBlocks; ++i)
            sums[i / 2][i % 2] = warp_sum<4>(rows[i / 2].sum[i % 2]);
        tell(sums);
    }

    JITNEY_DEVICE void tell_weights(const Scores& scores) const {
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                char* to = Memory::weights(lane_row(block, half)) + lane_key() * 2;
#pragma unroll
                for (int keys = 0; keys < kKeyBlocks; ++keys) {
                    *reinterpret_cast<unsigned*>(to + keys * 16) =
                        T::pair(scores[block][keys][2 * half], scores[block][keys][2 * half + 1]);
                }
            }
        }
    }

    // The weights of this side's keys as operand a. Where a mask is read, finding the next tile and
    // copying its words take the registers that the scores had.
    JITNEY_DEVICE static void pack(Weights& own, const Scores& scores) {
#pragma unroll
        for (int step = 0; step < kKeyBlocks / 2; ++step) {
            pack_weights<C::format>(own[step], scores, step);
            if constexpr (C::mask == 0) continue;
#pragma unroll
            for (int i = 0; i < 4 * kRowBlocks; ++i)
                settle(own[step][i / 4][i % 4]);
        }
    }

    // Adds the values of the tile, first those of this side's keys, whose weights it has. `v_lane`
    // is where the lane reads those of the tile's first 16 keys (lane_address_rows).
    JITNEY_DEVICE void add_values(Output& out, const Weights& own, SharedAddress v_lane) const {
        multiply_values<C::format, C::head_dim, kSideKeys / 16>(
            out, v_lane + side * kSideKeys * Memory::kRowBytes, [&own](Fragments& p, int step) {
#pragma unroll
                for (int i = 0; i < 4 * kRowBlocks; ++i)
                    p[i / 4][i % 4] = own[step][i / 4][i % 4];
            });
        if constexpr (kSides == 2) {
            const int first_key = (1 - side) * kSideKeys;
            const SharedAddress p_lane =
                lane_address_rows(shared_address(Memory::weights(first_row)) + first_key * 2,
                                  Memory::kWeightRowBytes, lane);
            multiply_values<C::format, C::head_dim, kSideKeys / 16>(
                out, v_lane + first_key * Memory::kRowBytes, [p_lane](Fragments& p, int step) {
#pragma unroll
                    for (int block = 0; block < kRowBlocks; ++block) {
                        ldmatrix_x4(p[block],
                                    p_lane + block * 16 * Memory::kWeightRowBytes + step * 32);
                    }
                });
        }
    }
};

}  // namespace jitney
