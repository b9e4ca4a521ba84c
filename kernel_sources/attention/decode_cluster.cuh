// attn_decode_cluster: attention of a few packed query rows over many keys, on the tensor cores of
// sm_90 and newer. The keys of a tile of rows are divided among blocks, which may form a cluster,
// and, within a block, among four warps, each of which streams K and V through a ring of its own.
// docs/hopper_decode.md says how this came about.
#pragma once

#include "attention/append.cuh"
#include "attention/cluster_rows.cuh"
#include "attention/kv_rows.cuh"
#include "attention/line_tiles.cuh"
#include "attention/logits.cuh"
#include "attention/masking.cuh"
#include "attention/seen_keys.cuh"
#include "common/vector.cuh"

namespace jitney {

template <class C>
struct DecodeCluster {
    static_assert(C::tile_m == 16);
    static constexpr int kTileBytes = C::tile_n * line_row_bytes(C::head_dim);
    static constexpr int kKeyBlocks = C::tile_n / 8;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    static constexpr int kDimBlocks = 2 * kDimSteps;

    using T = Element<C::format>;
    using Result = RowResult<C::head_dim, 4>;

    const AttentionParams& params;
    SplitBlock<C> block;
    TileKeys tile;  // of all parts
    KeyPart part;   // this block's
    int lane;
    int warp;
    char* ring;
    int page = 0;       // of this lane's key in the tile that is loaded
    int next_page = 0;  // and in the one after it

    JITNEY_DEVICE explicit DecodeCluster(const AttentionParams& p)
        : params(p),
          block(block_of(p)),
          tile(block.keys(p)),
          part(key_part(p, tile.any, block.split, C::tile_n * kAttentionWarps)),
          lane(static_cast<int>(threadIdx.x) % 32),
          warp(warp_index()),
          ring(shared_memory() +
               warp * decode_cluster_ring_bytes(C::head_dim, C::tile_n, C::stages)) {}

    // The block's place. Packed queries have a map of tiles, in which some are left over:
    // those have no rows.
    JITNEY_DEVICE static SplitBlock<C> block_of(const AttentionParams& p) {
        SplitBlock<C> block(p);
        if constexpr (C::queries == kPackedQueries) {
            block.kv_head = block.tile / p.row_tiles;
            const int slot = block.tile - block.kv_head * p.row_tiles;
            const int batch = p.tile_batch[slot];
            block.rows = 0;
            if (batch < 0) return block;
            block.request = request_of<C::kv, C::queries>(p, batch);
            block.first_row = p.tile_index[slot] * C::tile_m;
            block.rows = min(C::tile_m, block.request.q_len * p.group - block.first_row);
        }
        return block;
    }

    // First key of the warp's tile number i.
    JITNEY_DEVICE int tile_key(int i) const {
        return part.keys.first + (i * kAttentionWarps + warp) * C::tile_n;
    }

    // The ring holds K of tile 0, V of tile 0, K of tile 1, ... in turn.
    JITNEY_DEVICE char* stage(int number) const { return ring + number % C::stages * kTileBytes; }

    // The page of this lane's key in the warp's tile number i; 0 where there is no such key.
    JITNEY_DEVICE int lane_page(int i) const {
        const int key = tile_key(i) + lane;
        return lane < C::tile_n && key < part.keys.end ? block.request.pages[page_of(params, key)]
                                                       : 0;
    }

    template <class Cached>
    JITNEY_DEVICE void load_from(int number, const Cached& cached) const {
        const SharedAddress to = shared_address(stage(number));
        if constexpr (C::append != 0) {
            const bool is_k = number % 2 == 0;
            const AttentionStrides& strides = is_k ? params.new_k_strides : params.new_v_strides;
            const char* new_rows = static_cast<const char*>(is_k ? params.new_k : params.new_v) +
                                   offset_of(strides, block.request.batch, 0, block.kv_head) * 2;
            load_line_tile<C::head_dim, C::tile_n>(
                to, lane,
                AppendCursor<Cached>{cached, new_rows, strides.row * 2,
                                     block.request.kv_len - params.new_len, tile_key(number / 2)});
        } else {
            load_line_tile<C::head_dim, C::tile_n>(to, lane, cached);
        }
    }

    // One group of copies a half tile, empty past the last.
    JITNEY_DEVICE void load(int number) {
        const int key = tile_key(number / 2);
        const bool is_k = number % 2 == 0;
        if constexpr (C::kv == kPagedKv) {
            if (is_k) {
                page = next_page;
                next_page = lane_page(number / 2 + 1);
            }
        }
        if (key < part.keys.end) {
            const KvHead head = kv_head_of<C>(is_k ? params.k : params.v,
                                              is_k ? params.k_strides : params.v_strides,
                                              block.request, block.kv_head, 2);
            if constexpr (C::kv == kPagedKv) {
                // A lane past the last key has the page 0, and the row of some slot of it.
                load_from(number, LaneRowsCursor{paged_row(params, head, key + lane, page),
                                                 part.keys.end - key});
            } else {
                load_from(number, DenseCursor<RowsBefore>(head, key, {part.keys.end - key}));
            }
        }
        cp_async_commit();
    }

    // Half tile `number`, when it is here. The load that takes the stage freed before it has begun.
    JITNEY_DEVICE char* next(int number) {
        cp_async_wait<C::stages - 2>();
        __syncwarp();  // the half tile is here; no lane reads the stage that is loaded next
        load(number + C::stages - 1);
        return stage(number);
    }

    // The query rows as operand a, straight from global memory.
    JITNEY_DEVICE void load_q(unsigned (&q)[kDimSteps][4]) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = half * 8 + lane / 4;
            const PackedRow packed =
                packed_row(params, block.request, block.kv_head, block.first_row + row);
            const T* from = static_cast<const T*>(params.q) +
                            query_offset_of(params.q_strides, block.request, packed);
#pragma unroll
            for (int chunk = 0; chunk < 2 * kDimSteps; ++chunk) {
                const int dim = chunk * 8 + 2 * (lane % 4);
                const bool valid = packed.valid && dim < C::head_dim;
                q[chunk / 2][half + 2 * (chunk % 2)] =
                    valid ? *reinterpret_cast<const unsigned*>(from + dim) : 0u;
            }
        }
    }

    JITNEY_DEVICE void run() {
        if (C::queries == kPackedQueries && block.rows == 0) return;  // and all of its cluster
        if (block.split >= part.parts) return;  // in a cluster every block has a part
        if constexpr (C::kv == kPagedKv) next_page = lane_page(0);
#pragma unroll 1
        for (int i = 0; i < C::stages - 1; ++i)
            load(i);
        unsigned q[kDimSteps][4];
        load_q(q);
        RowLimits limits[2];
        RowLogits<C> logits[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = block.first_row + half * 8 + lane / 4;
            limits[half] = row_limits<C>(params, block.request, block.kv_head, row);
            logits[half] = row_logits<C>(params, block.request, block.kv_head, row);
        }
        const float scale_log2 = logit_scale_log2<C>(params);
        float out[1][kDimBlocks][4] = {};
        SoftmaxRows rows = empty_rows();

        for (int i = 0; tile_key(i) < part.keys.end; ++i) {
            const SharedAddress k_tile = shared_address(next(2 * i));
            float scores[1][kKeyBlocks][4] = {};
            multiply_line_keys<C::format, C::head_dim>(scores[0], q,
                                                       line_columns<C::head_dim>(k_tile, lane));
            const int key = tile_key(i) + 2 * (lane % 4);
            if constexpr (kEditsLogits<C>) {
                edit_logits<C>(params, block.request, scores[0], logits, key);
            }
            if (needs_mask<C>(tile.every, tile_key(i), C::tile_n)) {
                mask_scores(scores[0], key, [&](int half, int lane_key) {
                    return keeps<C>(limits[half], lane_key);
                });
            }
            online_softmax(scores[0], out[0], rows, scale_log2);
            char* const v_tile = next(2 * i + 1);
            if constexpr (C::mask != 0) {
                const SeenKeys<C::tile_n> seen = weighted_keys(scores[0], lane);
                if (!seen.any()) continue;
                clear_unseen_lines<C::head_dim>(v_tile, seen, lane);
            }
            multiply_line_values<C::format, C::head_dim>(
                out, scores, line_rows<C::head_dim>(shared_address(v_tile), lane));
        }
        if constexpr (C::append != 0) append();
        cp_async_wait<0>();
        __syncthreads();  // the rings are free: the warps' accumulators meet there
        finish(out[0], rows);
    }

    // The block that has the first rows and the last part writes the new rows to the cache; nobody
    // reads them from there in this launch.
    JITNEY_DEVICE void append() const {
        if (block.first_row == 0 && block.split == part.parts - 1) {
            append_rows<C, 2, 16>(params, block.request, block.kv_head);
        }
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
            for (int i = 0; i < kDimBlocks; ++i)
                store_vector(to + i * 8,
                             Vector<float, 2>{{out[i][2 * half], out[i][2 * half + 1]}});
            const float sum = warp_sum<4>(rows.sum[half]);
            if (lane % 4 == 0) {
                statistics[warps.slot(warp, row)] = {
                    log2_shift(rows.maximum[half], logit_scale_log2<C>(params)), sum};
            }
        }
        __syncthreads();
        const auto for_my_results = [&](const auto& body) {
#pragma unroll 1
            for (int row = warp; row < block.rows; row += kAttentionWarps) {
                body(row,
                     warps.template merge<Result, kAttentionWarps>(kAttentionWarps, row, lane));
            }
        };
        if (const unsigned blocks = blocks_in_cluster(); blocks > 1) {
            finish_cluster<C, Result>(params, block, blocks, for_my_results);
        } else {
            finish_split<C, Result>(params, block, part.parts, flag, for_my_results);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kAttentionThreads, 2)
    attn_decode_cluster(const __grid_constant__ AttentionParams params) {
    DecodeCluster<C>(params).run();
}

}  // namespace jitney
