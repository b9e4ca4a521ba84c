// attn_prefill_mma: attention of a tile of packed query rows over all keys they see, on the tensor
// cores. Four warps, each with tile_m / 4 rows of its own; K and V tiles pass through shared
// memory, the load of one hidden behind the product with the other. Scores never leave registers.
// The algorithm is FlashAttention-2's (Dao 2023, arXiv:2307.08691).
#pragma once

#include "attention/kv_rows.cuh"
#include "attention/logits.cuh"
#include "attention/masking.cuh"
#include "attention/softmax.cuh"
#include "attention/warp_mma.cuh"

namespace jitney {

template <class C>
struct PrefillMma {
    static constexpr int kRowBytes = mma_row_bytes(C::head_dim);
    static constexpr int kRowBlocks = C::tile_m / (16 * kAttentionWarps);
    static constexpr int kKeyBlocks = C::tile_n / 8;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    static constexpr int kDimBlocks = 2 * kDimSteps;
    static constexpr int kWarpRows = 16 * kRowBlocks;
    // Where three blocks fit an SM, their warps hide each other's waits, and the registers are
    // worth more to them than Q kept in registers or loaded ahead.
    static constexpr int kBlocksAnSm = C::head_dim <= 64 ? 3 : 2;
    static constexpr bool kKeepQ = kBlocksAnSm == 2 && kDimSteps * kRowBlocks <= 8;
    static constexpr int kQBuffers = kBlocksAnSm == 2 ? 2 : 1;

    using T = Element<C::format>;
    using Fragments = unsigned[kRowBlocks][4];

    const AttentionParams& params;
    Request request;
    int kv_head;
    int tile;  // of the request's packed rows; negative: none
    SharedAddress q_tile;
    SharedAddress k_tile;
    SharedAddress v_tile;
    int lane;
    int warp;

    JITNEY_DEVICE explicit PrefillMma(const AttentionParams& p)
        : params(p),
          q_tile(shared_address(shared_memory())),
          k_tile(q_tile + C::tile_m * kRowBytes),
          v_tile(k_tile + C::tile_n * kRowBytes),
          lane(static_cast<int>(threadIdx.x) % 32),
          warp(warp_index()) {
        const int block = reread_block_index();
        int batch;
        if constexpr (C::queries == kPackedQueries) {
            const int slot = block / params.kv_heads;
            kv_head = block - slot * params.kv_heads;
            batch = params.tile_batch[slot];
            tile = batch < 0 ? -1 : params.tile_index[slot];
            if (tile < 0) return;
        } else {
            const int heads = params.batch * params.kv_heads;
            int head;
            if constexpr (C::causal != 0) {
                // The longest tiles of all heads first, so that the last wave is short.
                tile = params.row_tiles - 1 - block / heads;
                head = block % heads;
            } else {
                // The tiles of one head together, so that its K and V stay in the L2.
                tile = block % params.row_tiles;
                head = block / params.row_tiles;
            }
            batch = head / params.kv_heads;
            kv_head = head - batch * params.kv_heads;
        }
        request = request_of<C::kv, C::queries>(params, batch);
    }

    // Walks over the tile's query rows; rows past the last query are zero.
    struct QueryCursor {
        const PrefillMma& kernel;
        int row;

        JITNEY_DEVICE void start(int first) { row += first; }
        JITNEY_DEVICE void advance(int rows) { row += rows; }
        JITNEY_DEVICE PackedRow packed() const {
            return packed_row(kernel.params, kernel.request, kernel.kv_head, row);
        }
        JITNEY_DEVICE bool valid() const { return packed().valid; }
        JITNEY_DEVICE const char* address() const {
            const AttentionParams& p = kernel.params;
            return static_cast<const char*>(p.q) +
                   query_offset_of(p.q_strides, kernel.request, packed()) * 2;
        }
    };

    // What the loop needs now and then lies in the padding behind the rows of Q and K, because the
    // accumulators leave no registers for it: the limits of each row of Q,
    JITNEY_DEVICE RowLimits* limits(int row) const { return padding<RowLimits>(row); }
    // the keys of the tile,
    JITNEY_DEVICE TileKeys* tile_keys_note() const { return padding<TileKeys>(C::tile_m); }
    // and where this head's keys and values stand.
    struct KvRows {
        const char* first;
        long long row_bytes;
    };
    JITNEY_DEVICE KvRows* k_rows() const { return padding<KvRows>(C::tile_m + 1); }
    JITNEY_DEVICE KvRows* v_rows() const { return padding<KvRows>(C::tile_m + 2); }

    template <class Note>
    JITNEY_DEVICE static Note* padding(int row) {
        static_assert(sizeof(Note) <= 16);
        return reinterpret_cast<Note*>(shared_memory() + row * kRowBytes +
                                       mma_dim(C::head_dim) * 2);
    }

    // Behind the tiles, where an option needs them: the pages of the keys of two tiles in turn,
    // and what the logits of each row are edited by.
    JITNEY_DEVICE static char* behind_tiles() {
        return shared_memory() + (C::tile_m + 2 * C::tile_n) * kRowBytes;
    }
    JITNEY_DEVICE static int* pages(int key) {
        return reinterpret_cast<int*>(behind_tiles()) + key / C::tile_n % 2 * C::tile_n;
    }
    JITNEY_DEVICE static RowLogits* logits(int row) {
        return reinterpret_cast<RowLogits*>(behind_tiles() +
                                            (C::kv == kPagedKv ? 2 * C::tile_n * 4 : 0)) +
               row;
    }

    // Starts the copies of the page numbers of the tile at `key`.
    JITNEY_DEVICE void load_pages(int key, int end) const {
        const int row = static_cast<int>(threadIdx.x);
        if (row < C::tile_n) {
            const bool valid = key + row < end;
            cp_async_4(shared_address(pages(key) + row),
                       request.pages + (valid ? page_of(params, key + row) : 0), valid);
        }
    }

    JITNEY_DEVICE void load_keys(SharedAddress to, const KvRows& rows,
                                 const AttentionStrides& strides, int key) const {
        const KvHead head = {rows.first, rows.row_bytes, strides.batch * 2};
        const int end = tile_keys_note()->any.end;
        if constexpr (C::kv == kPagedKv) {
            const int* tile_pages = pages(key);
            // Threads beyond the last whole row of a pass ask for rows that the tile does not have.
            const auto page_of_row = [tile_pages](int row) {
                return tile_pages[min(row, C::tile_n - 1)];
            };
            load_tile<C::head_dim, C::tile_n, kAttentionThreads>(
                to, static_cast<int>(threadIdx.x),
                PagedCursor<decltype(page_of_row)>{params, head, page_of_row, key, end});
        } else {
            load_tile<C::head_dim, C::tile_n, kAttentionThreads>(to, static_cast<int>(threadIdx.x),
                                                                 DenseCursor(head, key, end));
        }
        cp_async_commit();
    }

    JITNEY_DEVICE void load_q(Fragments& q, int step) const {
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
            const SharedAddress rows = q_tile + (warp * kWarpRows + block * 16) * kRowBytes;
            ldmatrix_x4(q[block], lane_address_rows(rows, kRowBytes, lane) + step * 32);
        }
    }

    JITNEY_DEVICE void run() {
        if (tile < 0) return;
        const int first_row = tile * C::tile_m;
        const int last_row = min(first_row + C::tile_m, request.q_len * params.group) - 1;
        const TileKeys seen = tile_keys<C>(params, request, first_row, last_row);
        const int first_key = seen.any.first / C::tile_n * C::tile_n;
        const KvHead k_head = kv_head_of<C>(params.k, params.k_strides, request, kv_head, 2);
        if (static_cast<int>(threadIdx.x) < C::tile_m) {
            const int row = static_cast<int>(threadIdx.x);
            *limits(row) = row_limits<C>(params, request, kv_head, first_row + row);
            if constexpr (kEditsLogits<C>) {
                *logits(row) = row_logits<C>(params, request, kv_head, first_row + row);
            }
        }
        if (threadIdx.x == 0) {
            const KvHead v_head = kv_head_of<C>(params.v, params.v_strides, request, kv_head, 2);
            *k_rows() = {k_head.first, k_head.row_bytes};
            *v_rows() = {v_head.first, v_head.row_bytes};
            *tile_keys_note() = seen;
        }
        if constexpr (C::kv == kPagedKv) {
            load_pages(first_key, seen.any.end);
            cp_async_commit();
        }
        load_tile<C::head_dim, C::tile_m, kAttentionThreads>(q_tile, static_cast<int>(threadIdx.x),
                                                             QueryCursor{*this, first_row});
        cp_async_commit();
        if constexpr (C::kv == kPagedKv) cp_async_wait<1>();
        __syncthreads();  // the notes (and the pages) are there
        if (first_key < seen.any.end) {
            load_keys(k_tile, *k_rows(), params.k_strides, first_key);
        }

        float out[kRowBlocks][kDimBlocks][4] = {};
        SoftmaxRows rows[kRowBlocks];
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block)
            rows[block] = empty_rows();
        const SharedAddress k_lane = lane_address_columns(k_tile, kRowBytes, lane);
        const SharedAddress v_lane = lane_address_rows(v_tile, kRowBytes, lane);
        Fragments kept_q[kKeepQ ? kDimSteps : 1];

        int key = first_key;
        bool more = key < seen.any.end;
        bool first = true;
        const float scale_log2 = logit_scale_log2<C>(params);
        while (more) {
            cp_async_wait<0>();
            __syncthreads();  // K is here; nobody reads the V before it any more
            load_keys(v_tile, *v_rows(), params.v_strides, key);
            if constexpr (C::kv == kPagedKv) {
                load_pages(key + C::tile_n, tile_keys_note()->any.end);
                cp_async_commit();
            }
            if constexpr (kKeepQ) {
                if (first) {
                    first = false;
#pragma unroll
                    for (int step = 0; step < kDimSteps; ++step)
                        load_q(kept_q[step], step);
                }
            }

            float scores[kRowBlocks][kKeyBlocks][4] = {};
            multiply_keys<C::format, C::head_dim, kQBuffers>(
                scores, k_lane, [&](Fragments& q, int step) {
                    if constexpr (kKeepQ) {
#pragma unroll
                        for (int i = 0; i < 4 * kRowBlocks; ++i)
                            q[i / 4][i % 4] = kept_q[step][i / 4][i % 4];
                    } else {
                        load_q(q, step);
                    }
                });
            const int lane_row = warp * kWarpRows + lane / 4;
            const int lane_key = key + 2 * (lane % 4);
            if constexpr (kEditsLogits<C>) {
#pragma unroll
                for (int block = 0; block < kRowBlocks; ++block) {
                    const int row = lane_row + block * 16;
                    edit_logits<C>(params, scores[block], {*logits(row), *logits(row + 8)},
                                   lane_key);
                }
            }
            if (needs_mask<C>(tile_keys_note()->every, key, C::tile_n)) {
#pragma unroll
                for (int block = 0; block < kRowBlocks; ++block) {
                    const int row = lane_row + block * 16;
                    mask_scores<C>(scores[block], {*limits(row), *limits(row + 8)}, lane_key);
                }
            }
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block) {
                online_softmax(scores[block], out[block], rows[block], scale_log2);
            }

            cp_async_wait<0>();
            __syncthreads();  // V is here; nobody reads this K any more
            key += C::tile_n;
            more = key < tile_keys_note()->any.end;
            if (more) load_keys(k_tile, *k_rows(), params.k_strides, key);
            multiply_values<C::format, C::head_dim>(out, scores, v_lane);
        }
        cp_async_wait<0>();
        __syncthreads();  // Q has landed even where no key was seen; its memory is free now
        PrefillMma(params).write(out, rows);
    }

    // Normalises, and writes the output through shared memory, 16 bytes a store. Each warp's rows
    // lie where its own rows of Q lay.
    JITNEY_DEVICE void write(const float (&out)[kRowBlocks][kDimBlocks][4],
                             const SoftmaxRows (&rows)[kRowBlocks]) const {
        const int first_row = tile * C::tile_m;
        char* staged = shared_memory() + warp * kWarpRows * kRowBytes;
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = block * 16 + half * 8 + lane / 4;
                const PackedRow packed =
                    packed_row(params, request, kv_head, first_row + warp * kWarpRows + row);
                const float maximum =
                    log2_shift(rows[block].maximum[half], logit_scale_log2<C>(params));
                const float sum = warp_sum<4>(rows[block].sum[half]);
                const RowEnd end =
                    row_end<C>(params, packed.head, maximum, packed.valid ? sum : 0.0f);
                char* to = staged + row * kRowBytes + (lane % 4) * 4;
#pragma unroll
                for (int dim = 0; dim < kDimBlocks; ++dim) {
                    *reinterpret_cast<unsigned*>(to + dim * 16) =
                        T::pair(out[block][dim][2 * half] * end.norm,
                                out[block][dim][2 * half + 1] * end.norm);
                }
                if (params.lse != nullptr && packed.valid && lane % 4 == 0) {
                    params.lse[query_offset_of(params.lse_strides, request, packed)] = end.lse;
                }
            }
        }
        __syncwarp();
        constexpr int chunks = C::head_dim / 8;
        for (int i = lane; i < kWarpRows * chunks; i += 32) {
            const int row = i / chunks;
            const int chunk = i - row * chunks;
            const PackedRow packed =
                packed_row(params, request, kv_head, first_row + warp * kWarpRows + row);
            if (!packed.valid) continue;
            T* to =
                static_cast<T*>(params.out) + query_offset_of(params.out_strides, request, packed);
            *reinterpret_cast<uint4*>(to + chunk * 8) =
                *reinterpret_cast<const uint4*>(staged + row * kRowBytes + chunk * 16);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kAttentionThreads, PrefillMma<C>::kBlocksAnSm)
    attn_prefill_mma(const __grid_constant__ AttentionParams params) {
    PrefillMma<C>(params).run();
}

}  // namespace jitney
