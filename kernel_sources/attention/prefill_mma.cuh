// attn_prefill_mma: attention of a tile of packed query rows over all keys they see, on the tensor
// cores. Four warps, each with tile_m / 4 rows of its own; K and V tiles pass through shared
// memory, the load of one hidden behind the product with the other. Scores never leave registers.
// The algorithm is FlashAttention-2's (Dao 2023, arXiv:2307.08691).
//
// Above head_dim 128 two warps share their rows, because the accumulators of more than 16 rows
// would not fit one warp's registers, and with 16 the fragments of K and V, read for so few rows,
// ask more of shared memory than it can give. Each side multiplies half of the keys and half of the
// head dimension, and tells the other its weights.
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
    static constexpr int kSides = prefill_mma_sides(C::head_dim, C::tile_n);
    static constexpr int kRowBlocks = C::tile_m * kSides / (16 * kAttentionWarps);
    static constexpr int kWarpRows = 16 * kRowBlocks;
    static constexpr int kSideKeys = C::tile_n / kSides;
    static constexpr int kKeyBlocks = kSideKeys / 8;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    // Where an odd number is divided, both sides have the step in the middle.
    static constexpr int kSideDimSteps = (kDimSteps + kSides - 1) / kSides;
    static constexpr int kDimBlocks = 2 * kSideDimSteps;
    // Where three blocks fit an SM, their warps hide each other's waits, and the registers are
    // worth more to them than Q kept in registers or loaded ahead.
    static constexpr int kBlocksAnSm = C::head_dim <= 64 ? 3 : 2;
    static constexpr bool kKeepQ = kBlocksAnSm == 2 && kDimSteps * kRowBlocks <= 8;
    static constexpr int kCausalBand = 2;
    static constexpr int kQBuffers = kBlocksAnSm == 2 && kSides == 1 ? 2 : 1;

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
    int side;
    int warp_row;  // the first of the warp's rows in the tile

    JITNEY_DEVICE explicit PrefillMma(const AttentionParams& p)
        : params(p),
          q_tile(shared_address(shared_memory())),
          k_tile(q_tile + C::tile_m * kRowBytes),
          v_tile(k_tile + C::tile_n * kRowBytes),
          lane(static_cast<int>(threadIdx.x) % 32) {
        const int warp = warp_index();
        side = warp % kSides;
        warp_row = warp / kSides * kWarpRows;
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
                // The longest tiles of all heads first, so that the last wave is short; of each
                // head two that read the same keys at about the same time, so that the L2 has them.
                const int band = block / (heads * kCausalBand);
                const int longest = params.row_tiles - 1 - band * kCausalBand;
                const int tiles = min(kCausalBand, longest + 1);
                const int number = block - band * heads * kCausalBand;
                head = number / tiles;
                tile = longest - (number - head * tiles);
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

    // Behind the tiles lies what not every specialization needs.
    static constexpr PrefillMmaLayout kLayout =
        prefill_mma_layout(C::head_dim, C::tile_m, C::tile_n, C::kv == kPagedKv,
                           row_logits_bytes(kEditsLogits<C>, kCallerEdits<C>));
    // The pages of the keys of two tiles in turn,
    JITNEY_DEVICE static int* pages(int key) {
        return reinterpret_cast<int*>(shared_memory() + kLayout.pages) +
               key / C::tile_n % 2 * C::tile_n;
    }
    // what the logits of each row are edited by,
    JITNEY_DEVICE static RowLogits<C>* logits(int row) {
        return reinterpret_cast<RowLogits<C>*>(shared_memory() + kLayout.logits) + row;
    }
    // a row's weights, and a number of each side.
    static constexpr int kWeightRowBytes = prefill_mma_weight_row_bytes(C::tile_n);
    JITNEY_DEVICE static char* weights(int row) {
        return shared_memory() + kLayout.weights + row * kWeightRowBytes;
    }
    JITNEY_DEVICE static float* number(int of_side, int row) {
        return reinterpret_cast<float*>(shared_memory() + kLayout.numbers) + of_side * C::tile_m +
               row;
    }
    // The first step of the head dimension that this side multiplies.
    JITNEY_DEVICE int first_dim_step() const { return side * (kDimSteps - kSideDimSteps); }

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
                                 const AttentionStrides& strides, int key, int end) const {
        const KvHead head = {rows.first, rows.row_bytes, strides.batch * 2};
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
            const SharedAddress rows = q_tile + (warp_row + block * 16) * kRowBytes;
            ldmatrix_x4(q[block], lane_address_rows(rows, kRowBytes, lane) + step * 32);
        }
    }

    // Maxima and weights of a tile, agreed upon by both sides.
    JITNEY_DEVICE void softmax(float (&scores)[kRowBlocks][kKeyBlocks][4],
                               float (&out)[kRowBlocks][kDimBlocks][4],
                               SoftmaxRows (&rows)[kRowBlocks], float scale_log2) const {
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

    // Numbers of this side's rows for the other, and the other's. Barriers stand between.
    JITNEY_DEVICE void tell(const float (&values)[kRowBlocks][2]) const {
        if (lane % 4 != 0) return;
#pragma unroll
        for (int i = 0; i < 2 * kRowBlocks; ++i)
            *number(side, lane_row(i / 2, i % 2)) = values[i / 2][i % 2];
    }
    JITNEY_DEVICE float told(int block, int half) const {
        return *number(1 - side, lane_row(block, half));
    }

    JITNEY_DEVICE void tell_weights(const float (&scores)[kRowBlocks][kKeyBlocks][4]) const {
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                char* to = weights(lane_row(block, half)) + (side * kSideKeys + 2 * (lane % 4)) * 2;
#pragma unroll
                for (int keys = 0; keys < kKeyBlocks; ++keys) {
                    *reinterpret_cast<unsigned*>(to + keys * 16) =
                        T::pair(scores[block][keys][2 * half], scores[block][keys][2 * half + 1]);
                }
            }
        }
    }

    // Adds the values of the tile, first those of this side's keys, whose weights it has.
    JITNEY_DEVICE void add_values(float (&out)[kRowBlocks][kDimBlocks][4],
                                  const float (&scores)[kRowBlocks][kKeyBlocks][4],
                                  SharedAddress v_lane) const {
        multiply_values<C::format, C::head_dim>(out, scores, v_lane + side * kSideKeys * kRowBytes);
        if constexpr (kSides == 2) {
            const int first_key = (1 - side) * kSideKeys;
            const SharedAddress p_lane = lane_address_rows(
                shared_address(weights(warp_row)) + first_key * 2, kWeightRowBytes, lane);
            multiply_values<C::format, C::head_dim, kSideKeys / 16>(
                out, v_lane + first_key * kRowBytes, [p_lane](Fragments& p, int step) {
#pragma unroll
                    for (int block = 0; block < kRowBlocks; ++block) {
                        ldmatrix_x4(p[block], p_lane + block * 16 * kWeightRowBytes + step * 32);
                    }
                });
        }
    }

    // The lane's row in the tile.
    JITNEY_DEVICE int lane_row(int block, int half) const {
        return warp_row + block * 16 + half * 8 + lane / 4;
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
        if constexpr (C::kv == kPagedKv) {
            cp_async_wait<1>();
            __syncthreads();  // the pages are there
        }
        if (first_key < seen.any.end) {
            load_keys(k_tile, {k_head.first, k_head.row_bytes}, params.k_strides, first_key,
                      seen.any.end);
        }

        float out[kRowBlocks][kDimBlocks][4] = {};
        SoftmaxRows rows[kRowBlocks];
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block)
            rows[block] = empty_rows();
        const SharedAddress k_lane =
            lane_address_columns(k_tile + side * kSideKeys * kRowBytes, kRowBytes, lane);
        const SharedAddress v_lane =
            lane_address_rows(v_tile + first_dim_step() * 32, kRowBytes, lane);
        Fragments kept_q[kKeepQ ? kDimSteps : 1];

        int key = first_key;
        bool more = key < seen.any.end;
        bool first = true;
        const float scale_log2 = logit_scale_log2<C>(params);
        while (more) {
            cp_async_wait<0>();
            __syncthreads();  // K is here; nobody reads the V before it any more
            load_keys(v_tile, *v_rows(), params.v_strides, key, tile_keys_note()->any.end);
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
            const int lane_key = key + side * kSideKeys + 2 * (lane % 4);
            if constexpr (kEditsLogits<C>) {
#pragma unroll
                for (int block = 0; block < kRowBlocks; ++block) {
                    edit_logits<C>(params, request, scores[block],
                                   {*logits(lane_row(block, 0)), *logits(lane_row(block, 1))},
                                   lane_key);
                }
            }
            if (needs_mask<C>(tile_keys_note()->every, key, C::tile_n)) {
#pragma unroll
                for (int block = 0; block < kRowBlocks; ++block) {
                    mask_scores<C>(scores[block],
                                   {*limits(lane_row(block, 0)), *limits(lane_row(block, 1))},
                                   lane_key);
                }
            }
            softmax(scores, out, rows, scale_log2);

            cp_async_wait<0>();
            __syncthreads();  // V is here, and the weights; nobody reads this K any more
            key += C::tile_n;
            more = key < tile_keys_note()->any.end;
            if (more) {
                load_keys(k_tile, *k_rows(), params.k_strides, key, tile_keys_note()->any.end);
            }
            add_values(out, scores, v_lane);
        }
        if constexpr (kSides == 2) tell_sums(rows);
        cp_async_wait<0>();
        __syncthreads();  // Q has landed even where no key was seen; its memory is free now
        PrefillMma(params).write(out, rows);
    }

    JITNEY_DEVICE void tell_sums(const SoftmaxRows (&rows)[kRowBlocks]) const {
        float sums[kRowBlocks][2];
#pragma unroll
        for (int i = 0; i < 2 * kRowBlocks; ++i)
            sums[i / 2][i % 2] = warp_sum<4>(rows[i / 2].sum[i % 2]);
        tell(sums);
    }

    // Normalises, and writes the output through shared memory, 16 bytes a store. The rows lie where
    // the warp's own rows of Q lay.
    JITNEY_DEVICE void write(const float (&out)[kRowBlocks][kDimBlocks][4],
                             const SoftmaxRows (&rows)[kRowBlocks]) const {
        const int first_row = tile * C::tile_m;
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = lane_row(block, half);
                const PackedRow packed = packed_row(params, request, kv_head, first_row + row);
                const float maximum =
                    log2_shift(rows[block].maximum[half], logit_scale_log2<C>(params));
                float sum = warp_sum<4>(rows[block].sum[half]);
                if constexpr (kSides == 2) sum += told(block, half);
                const RowEnd end =
                    row_end<C>(params, packed.head, maximum, packed.valid ? sum : 0.0f);
                char* to = shared_memory() + row * kRowBytes + first_dim_step() * 32 + lane % 4 * 4;
#pragma unroll
                for (int dim = 0; dim < kDimBlocks; ++dim) {
                    // The step in the middle, where both sides have it, is the first one's.
                    if (kSides == 2 && kDimSteps % 2 != 0 && dim < 2 && side == 1) continue;
                    *reinterpret_cast<unsigned*>(to + dim * 16) =
                        T::pair(out[block][dim][2 * half] * end.norm,
                                out[block][dim][2 * half + 1] * end.norm);
                }
                if (params.lse != nullptr && packed.valid && lane % 4 == 0 && side == 0) {
                    params.lse[query_offset_of(params.lse_strides, request, packed)] = end.lse;
                }
            }
        }
        if constexpr (kSides == 1) {
            __syncwarp();
        } else {
            __syncthreads();
        }
        constexpr int chunks = C::head_dim / 8;
        constexpr int rows_a_side = kWarpRows / kSides;
        for (int i = lane; i < rows_a_side * chunks; i += 32) {
            const int row = warp_row + side * rows_a_side + i / chunks;
            const int chunk = i % chunks;
            const PackedRow packed = packed_row(params, request, kv_head, first_row + row);
            if (!packed.valid) continue;
            T* to =
                static_cast<T*>(params.out) + query_offset_of(params.out_strides, request, packed);
            *reinterpret_cast<uint4*>(to + chunk * 8) =
                *reinterpret_cast<const uint4*>(shared_memory() + row * kRowBytes + chunk * 16);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kAttentionThreads, PrefillMma<C>::kBlocksAnSm)
    attn_prefill_mma(const __grid_constant__ AttentionParams params) {
    PrefillMma<C>(params).run();
}

}  // namespace jitney
