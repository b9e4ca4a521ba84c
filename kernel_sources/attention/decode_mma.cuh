// attn_decode_mma: attention of a few packed query rows over many keys, on the tensor cores. The
// keys are divided among blocks (splits) and, within one, among four warps, each of which streams
// K and V through a ring of its own: nothing but the memory sets the pace.
#pragma once

#include "attention/masking.cuh"
#include "attention/split.cuh"
#include "attention/warp_mma.cuh"

namespace jitney {

template <class C>
struct DecodeMma {
    static_assert(C::tile_m == 16);
    static constexpr int kRowBytes = mma_row_bytes(C::head_dim);
    static constexpr int kTileBytes = C::tile_n * kRowBytes;
    static constexpr int kKeyBlocks = C::tile_n / 8;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    static constexpr int kDimBlocks = 2 * kDimSteps;

    using T = Element<C::format>;
    using Fragments = unsigned[1][4];
    using Result = RowResult<C::head_dim, 4>;

    const AttentionParams& params;
    SplitBlock block;
    KeyRange keys;
    int clear_keys;  // that every row sees
    int lane;
    int warp;
    SharedAddress ring;

    JITNEY_DEVICE explicit DecodeMma(const AttentionParams& p)
        : params(p),
          block(p, C::tile_m),
          lane(static_cast<int>(threadIdx.x) % 32),
          warp(warp_index()),
          ring(shared_address(shared_memory()) +
               warp * decode_mma_ring_bytes(C::head_dim, C::tile_n, C::stages)) {
        const int last_position = (block.first_row + block.rows - 1) / params.group;
        keys = split_range(visible_keys<C>(params, last_position), params.splits, block.split,
                           C::tile_n * kAttentionWarps);
        clear_keys = C::mask != 0 ? 0 : visible_keys<C>(params, block.first_row / params.group);
    }

    // First key of the warp's tile number i.
    JITNEY_DEVICE int tile_key(int i) const {
        return keys.first + (i * kAttentionWarps + warp) * C::tile_n;
    }

    // The ring holds K of tile 0, V of tile 0, K of tile 1, ... in turn.
    JITNEY_DEVICE SharedAddress stage(int number) const {
        return ring + number % C::stages * kTileBytes;
    }

    JITNEY_DEVICE DenseCursor cursor(const void* tensor, const AttentionStrides& strides,
                                     int key) const {
        const char* head = static_cast<const char*>(tensor) +
                           offset_of(strides, block.batch, 0, block.kv_head) * 2;
        return {head + key * (strides.row * 2), strides.row * 2, keys.end - key};
    }

    // One group of copies a half tile, empty past the last.
    JITNEY_DEVICE void load(int number) const {
        const int key = tile_key(number / 2);
        if (key < keys.end) {
            const bool is_k = number % 2 == 0;
            load_tile<C::head_dim, C::tile_n, 32>(
                stage(number), lane,
                cursor(is_k ? params.k : params.v, is_k ? params.k_strides : params.v_strides,
                       key));
        }
        cp_async_commit();
    }

    // Waits for half tile `number`, and starts the load that takes the stage freed before it.
    JITNEY_DEVICE SharedAddress next(int number) const {
        cp_async_wait<C::stages - 2>();
        __syncwarp();  // the half tile is here; no lane reads the stage that is loaded next
        load(number + C::stages - 1);
        return stage(number);
    }

    // The query rows as operand a, straight from global memory.
    JITNEY_DEVICE void load_q(Fragments (&q)[kDimSteps]) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = half * 8 + lane / 4;
            const PackedRow packed = packed_row(params, block.kv_head, block.first_row + row);
            const T* from = static_cast<const T*>(params.q) +
                            offset_of(params.q_strides, block.batch, packed.position, packed.head);
#pragma unroll
            for (int step = 0; step < kDimSteps; ++step) {
#pragma unroll
                for (int side = 0; side < 2; ++side) {
                    const int dim = step * 16 + side * 8 + 2 * (lane % 4);
                    const bool valid = packed.valid && dim < C::head_dim;
                    q[step][0][half + 2 * side] =
                        valid ? *reinterpret_cast<const unsigned*>(from + dim) : 0u;
                }
            }
        }
    }

    JITNEY_DEVICE void run() {
#pragma unroll
        for (int i = 0; i < C::stages - 1; ++i)
            load(i);
        Fragments q[kDimSteps];
        load_q(q);
        RowLimits limits[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            limits[half] = row_limits<C>(params, block.batch, block.kv_head,
                                         block.first_row + half * 8 + lane / 4);
        }
        float out[1][kDimBlocks][4] = {};
        SoftmaxRows rows = empty_rows();

        for (int i = 0; tile_key(i) < keys.end; ++i) {
            const SharedAddress k_lane = lane_address_columns(next(2 * i), kRowBytes, lane);
            float scores[1][kKeyBlocks][4] = {};
            multiply_keys<C::format, C::head_dim, 2>(scores, k_lane,
                                                     [&](Fragments& fragments, int step) {
#pragma unroll
                                                         for (int j = 0; j < 4; ++j)
                                                             fragments[0][j] = q[step][0][j];
                                                     });
            const int key = tile_key(i);
            if (key + C::tile_n > clear_keys) {
                mask_scores<C>(scores[0], limits, key + 2 * (lane % 4));
            }
            online_softmax(scores[0], out[0], rows, params.scale_log2);
            const SharedAddress v_lane = lane_address_rows(next(2 * i + 1), kRowBytes, lane);
            multiply_values<C::format, C::head_dim>(out, scores, v_lane);
        }
        cp_async_wait<0>();
        __syncthreads();  // the rings are free: the warps' accumulators meet there
        finish(out[0], rows);
    }

    JITNEY_DEVICE void finish(const float (&out)[kDimBlocks][4], const SoftmaxRows& rows) const {
        constexpr int row_floats = decode_mma_row_floats(C::head_dim);
        float* memory = reinterpret_cast<float*>(shared_memory());
        RowStatistics* statistics =
            reinterpret_cast<RowStatistics*>(memory + kAttentionWarps * C::tile_m * row_floats);
        unsigned* flag = reinterpret_cast<unsigned*>(statistics + kAttentionWarps * C::tile_m);
        const Partials warps = {memory, statistics, C::tile_m, row_floats};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = half * 8 + lane / 4;
            float* to = warps.row_out(warp, row) + 2 * (lane % 4);
#pragma unroll
            for (int block_of_8 = 0; block_of_8 < kDimBlocks; ++block_of_8) {
                *reinterpret_cast<float2*>(to + block_of_8 * 8) =
                    float2{out[block_of_8][2 * half], out[block_of_8][2 * half + 1]};
            }
            const float sum = warp_sum<4>(rows.sum[half]);
            if (lane % 4 == 0) {
                statistics[warps.slot(warp, row)] = {
                    log2_shift(rows.maximum[half], params.scale_log2), sum};
            }
        }
        __syncthreads();
        finish_split<C, Result>(params, block, flag, [&](const auto& body) {
#pragma unroll 1
            for (int row = warp; row < block.rows; row += kAttentionWarps) {
                body(row,
                     warps.template merge<Result, kAttentionWarps>(kAttentionWarps, row, lane));
            }
        });
    }
};

template <class C>
__global__ void __launch_bounds__(kAttentionThreads)
    attn_decode_mma(const __grid_constant__ AttentionParams params) {
    DecodeMma<C>(params).run();
}

}  // namespace jitney
