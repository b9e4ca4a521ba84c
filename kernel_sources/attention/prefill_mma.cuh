// attn_prefill_mma: attention of a tile of packed query rows over all keys they see, on the tensor
// cores. Four warps take rows of the tile (prefill_warp.cuh); K and V tiles pass through shared
// memory, the load of one hidden behind the product with the other. Scores never leave registers.
// The algorithm is FlashAttention-2's (Dao 2023, arXiv:2307.08691).
#pragma once

#include "attention/kv_rows.cuh"
#include "attention/masking.cuh"
#include "attention/prefill_walk.cuh"
#include "attention/prefill_warp.cuh"
#include "common/vector.cuh"

namespace jitney {

template <class C>
struct PrefillMma {
    using Memory = PrefillMemory<C>;
    using Walk = PrefillWalk<C>;
    using Warp = PrefillWarp<C>;
    using KvRows = typename Memory::KvRows;
    using Fragments = typename Warp::Fragments;
    using Scores = typename Warp::Scores;
    using Output = typename Warp::Output;
    using RowStates = typename Warp::RowStates;
    using T = Element<C::format>;

    static constexpr int kRowBytes = Memory::kRowBytes;
    static constexpr int kRowBlocks = Warp::kRowBlocks;
    // Where three blocks fit an SM, their warps hide each other's waits, and the registers are
    // worth more to them than Q kept in registers or loaded ahead.
    static constexpr int kBlocksAnSm = C::head_dim <= 64 ? 3 : 2;
    static constexpr bool kKeepQ = kBlocksAnSm == 2 && Warp::kDimSteps * kRowBlocks <= 8;
    static constexpr int kQBuffers = kBlocksAnSm == 2 && Warp::kSides == 1 ? 2 : 1;
    static constexpr int kCausalBand = 2;

    const AttentionParams& params;
    Request request;
    int kv_head;
    int tile;  // of the request's packed rows; negative: none
    SharedAddress q_tile;
    SharedAddress k_tile;
    SharedAddress v_tile;
    Warp warp;

    JITNEY_DEVICE explicit PrefillMma(const AttentionParams& p)
        : params(p),
          q_tile(shared_address(shared_memory())),
          k_tile(q_tile + C::tile_m * kRowBytes),
          v_tile(k_tile + C::tile_n * kRowBytes) {
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
            if constexpr (C::causal != 0 || C::mask != 0) {
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

    JITNEY_DEVICE int first_row() const { return tile * C::tile_m; }
    JITNEY_DEVICE int last_row() const {
        return min((tile + 1) * C::tile_m, request.q_len * params.group) - 1;
    }

    // With a mask tiles begin where its words do, and the first may begin before the first key that
    // a row sees, which may stand nowhere.
    static constexpr bool kBeginsBefore = C::mask != 0 && C::window != 0;
    JITNEY_DEVICE static auto rows_with_keys(int key, int end) {
        if constexpr (kBeginsBefore) {
            return RowsWithin{Memory::tile_keys()->any.first - key, end - key};
        } else {
            return RowsBefore{end - key};
        }
    }

    // Starts the copies of the page numbers of the tile at `key`.
    JITNEY_DEVICE void load_pages(int turn, int key, int end) const {
        const int row = static_cast<int>(threadIdx.x);
        if (row < C::tile_n) {
            const bool valid =
                key + row < end && (!kBeginsBefore || key + row >= Memory::tile_keys()->any.first);
            cp_async_4(shared_address(Memory::pages(turn) + row),
                       request.pages + (valid ? page_of(params, key + row) : 0), valid);
        }
    }

    // Starts the copies of the rows of the tile at `key` that `read` tells; `turn` is where its
    // pages are.
    template <class Rows>
    JITNEY_DEVICE void load_rows(SharedAddress to, const KvRows& rows,
                                 const AttentionStrides& strides, int turn, int key,
                                 const Rows& read) const {
        const KvHead head = {rows.first, rows.row_bytes, strides.batch * 2};
        if constexpr (C::kv == kPagedKv) {
            const int* tile_pages = Memory::pages(turn);
            // Threads beyond the last whole row of a pass ask for rows that the tile does not have.
            const auto page_of_row = [tile_pages](int row) {
                return tile_pages[min(row, C::tile_n - 1)];
            };
            load_tile<C::head_dim, C::tile_n, kAttentionThreads>(
                to, static_cast<int>(threadIdx.x),
                PagedCursor<decltype(page_of_row), Rows>{params, head, page_of_row, key, read});
        } else {
            load_tile<C::head_dim, C::tile_n, kAttentionThreads>(
                to, static_cast<int>(threadIdx.x), DenseCursor<Rows>(head, key, read));
        }
    }

    // What the work on a tile begins with, its keys and its mask, as one group of copies.
    JITNEY_DEVICE void load_keys(const KvRows& rows, int turn, int key, int end) const {
        load_rows(k_tile, rows, params.k_strides, turn, key, rows_with_keys(key, end));
        if constexpr (C::mask != 0) {
            Memory::mask().load(
                key, end, mask_band_stride(params.mask_bits.rows),
                [](unsigned row) { return Memory::row_note(static_cast<int>(row))->mask; });
        }
        cp_async_commit();
    }
    JITNEY_DEVICE void load_values(int turn, int key) const {
        const auto load = [&](const auto& rows) {
            load_rows(v_tile, *Memory::v_rows(), params.v_strides, turn, key, rows);
        };
        const auto rows = rows_with_values(key);
        // No key is looked at by itself in a tile that is seen whole. Above head_dim 128 the
        // registers have no room for two ways of loading.
        bool all = false;
        if constexpr (C::mask != 0 && C::head_dim <= 128) all = rows.seen.all();
        if (all) {
            load(RowsBefore{C::tile_n});
        } else {
            load(rows);
        }
        cp_async_commit();
    }
    // The keys that a row sees: without a mask all between the first and the last such key.
    JITNEY_DEVICE static auto rows_with_values(int key) {
        const TileKeys& keys = *Memory::tile_keys();
        if constexpr (C::mask != 0) {
            return RowsSeen<C::tile_n>{
                Memory::mask().seen_keys(key, !leaves_range<C>(keys.every, key, C::tile_n),
                                         [](int row) { return Memory::row_note(row)->keys; })};
        } else {
            return RowsBefore{keys.any.end - key};
        }
    }

    // Finds the first tile from `key` on that a row keeps a key of, and starts the copies of its
    // keys; the end of the keys or a place behind it where there is none. Nobody works on a tile.
    JITNEY_DEVICE int start_masked(int turn, int key) const {
        const int end = Memory::tile_keys()->any.end;
        key = Walk::search(key, end, [&](int segment) {
            Memory::mask().load_summary(params, request, kv_head, first_row(), last_row(), segment,
                                        end);
        });
        if constexpr (C::kv == kPagedKv) {
            load_pages(turn, key, end);
            cp_async_commit();
            cp_async_wait<0>();
            __syncthreads();  // the pages of the first tile are there
        }
        if (key < end) load_keys(*Memory::k_rows(), turn, key, end);
        return key;
    }

    // Writes the notes of the tile, of which thread number i writes those of row i.
    JITNEY_DEVICE void write_notes(const TileKeys& seen, const KvHead& k_head) const {
        const int row = static_cast<int>(threadIdx.x);
        if (row < C::tile_m) {
            const PackedRow packed = packed_row(params, request, kv_head, first_row() + row);
            typename Memory::RowNote note = {row_keys<C>(params, request, packed), nullptr};
            if constexpr (C::mask != 0) {
                // Rows past the last query take its mask; nobody asks for their result.
                const PackedRow masked =
                    packed_row(params, request, kv_head, min(first_row() + row, last_row()));
                note.mask = mask_row(params.mask_bits, request.batch, masked.head, masked.position);
            }
            *Memory::row_note(row) = note;
            if constexpr (kEditsLogits<C>) {
                *Memory::logits(row) = row_logits<C>(params, request, kv_head, first_row() + row);
            }
        }
        if (threadIdx.x == 0) {
            const KvHead v_head = kv_head_of<C>(params.v, params.v_strides, request, kv_head, 2);
            *Memory::k_rows() = {k_head.first, k_head.row_bytes};
            *Memory::v_rows() = {v_head.first, v_head.row_bytes};
            *Memory::tile_keys() = seen;
        }
    }

    // Writes the notes, and starts the copies of Q and of the keys of the first tile, whose place
    // it returns; the end of the keys or a place behind it where there is none.
    JITNEY_DEVICE int begin(const TileKeys& seen) const {
        // It is never below 0. Saying so makes it a value apart from the range's, which spares the
        // wide tile of head_dim 64 a spill.
        const int first = max(seen.any.first, 0);
        const int key = C::mask != 0 ? first / C::tile_n * C::tile_n : first;
        const KvHead k_head = kv_head_of<C>(params.k, params.k_strides, request, kv_head, 2);
        write_notes(seen, k_head);
        if constexpr (C::kv == kPagedKv && C::mask == 0) {
            load_pages(0, key, seen.any.end);
            cp_async_commit();
        }
        load_tile<C::head_dim, C::tile_m, kAttentionThreads>(q_tile, static_cast<int>(threadIdx.x),
                                                             QueryCursor{*this, first_row()});
        cp_async_commit();
        if constexpr (C::mask != 0) {
            __syncthreads();  // the notes are there
            return start_masked(0, key);
        } else {
            if constexpr (C::kv == kPagedKv) {
                cp_async_wait<1>();
                __syncthreads();  // the pages are there
            }
            if (key < seen.any.end) {
                load_keys({k_head.first, k_head.row_bytes}, 0, key, seen.any.end);
            }
            return key;
        }
    }

    JITNEY_DEVICE void load_q(Fragments& q, int step) const {
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
            const SharedAddress rows = q_tile + (warp.first_row + block * 16) * kRowBytes;
            ldmatrix_x4(q[block], lane_address_rows(rows, kRowBytes, warp.lane) + step * 32);
        }
    }

    // Edits the logits of the tile at `key`, and drops those of keys that do not count.
    JITNEY_DEVICE void edit_and_mask(Scores& scores, int key) const {
        const int lane_key = key + warp.lane_key();
        if constexpr (kEditsLogits<C>) {
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block) {
                edit_logits<C>(params, request, scores[block],
                               {*Memory::logits(warp.lane_row(block, 0)),
                                *Memory::logits(warp.lane_row(block, 1))},
                               lane_key);
            }
        }
        if constexpr (C::mask != 0) {
            Memory::mask().apply(scores, warp.lane_row(0, 0), key, warp.lane_key());
        }
        if (leaves_range<C>(Memory::tile_keys()->every, key, C::tile_n)) {
#pragma unroll
            for (int block = 0; block < kRowBlocks; ++block) {
                const KeyRange keys[2] = {Memory::row_note(warp.lane_row(block, 0))->keys,
                                          Memory::row_note(warp.lane_row(block, 1))->keys};
                mask_scores(scores[block], lane_key, [&keys](int half, int key_of_score) {
                    return lies_in<C>(keys[half], key_of_score);
                });
            }
        }
    }

    JITNEY_DEVICE void run() {
        if (tile < 0) return;
        const TileKeys seen = tile_keys<C>(params, request, first_row(), last_row());
        int key = begin(seen);
        int turn = 0;

        Output out = {};
        RowStates rows;
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block)
            rows[block] = empty_rows();
        const SharedAddress k_lane = lane_address_columns(
            k_tile + warp.side * Warp::kSideKeys * kRowBytes, kRowBytes, warp.lane);
        const SharedAddress v_lane =
            lane_address_rows(v_tile + warp.first_dim_step() * 32, kRowBytes, warp.lane);
        Fragments kept_q[kKeepQ ? Warp::kDimSteps : 1];

        bool more = key < seen.any.end;
        bool first = true;
        const float scale_log2 = logit_scale_log2<C>(params);
        while (more) {
            cp_async_wait<0>();
            __syncthreads();  // K is here; nobody reads the V before it any more
            load_values(turn, key);
            int next = 0;
            if constexpr (C::kv == kPagedKv) {
                next = Walk::next(key + C::tile_n);
                load_pages(1 - turn, next, Memory::tile_keys()->any.end);
                cp_async_commit();
            }
            if constexpr (kKeepQ) {
                if (first) {
                    first = false;
#pragma unroll
                    for (int step = 0; step < Warp::kDimSteps; ++step)
                        load_q(kept_q[step], step);
                }
            }

            Scores scores = {};
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
            edit_and_mask(scores, key);
            warp.softmax(scores, out, rows, scale_log2);
            typename Warp::Weights own;
            Warp::pack(own, scores);

            cp_async_wait<0>();
            __syncthreads();  // V is here, and the weights; nobody reads this K any more
            key = C::kv == kPagedKv ? next : Walk::next(key + C::tile_n);
            turn = 1 - turn;
            more = key < Walk::known_end();
            if (more) load_keys(*Memory::k_rows(), turn, key, Memory::tile_keys()->any.end);
            warp.add_values(out, own, v_lane);
            if constexpr (C::mask != 0) {
                if (!more && key < Memory::tile_keys()->any.end) {
                    // Made anew, like what writes the output: what these need beyond the loop has
                    // no registers in it.
                    key = PrefillMma(params).start_masked(turn, key);
                    more = key < Memory::tile_keys()->any.end;
                }
            }
        }
        if constexpr (Warp::kSides == 2) warp.tell_sums(rows);
        cp_async_wait<0>();
        __syncthreads();  // Q has landed even where no key was seen; its memory is free now
        PrefillMma(params).write(out, rows);
    }

    // Normalises, and writes the output through shared memory, 16 bytes a store. The rows lie where
    // the warp's own rows of Q lay.
    JITNEY_DEVICE void write(const Output& out, const RowStates& rows) const {
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = warp.lane_row(block, half);
                const PackedRow packed = packed_row(params, request, kv_head, first_row() + row);
                const float maximum =
                    log2_shift(rows[block].maximum[half], logit_scale_log2<C>(params));
                float sum = warp_sum<4>(rows[block].sum[half]);
                if constexpr (Warp::kSides == 2) sum += warp.told(block, half);
                const RowEnd end =
                    row_end<C>(params, packed.head, maximum, packed.valid ? sum : 0.0f);
                char* to = shared_memory() + row * kRowBytes + warp.first_dim_step() * 32 +
                           warp.lane % 4 * 4;
#pragma unroll
                for (int dim = 0; dim < Warp::kDimBlocks; ++dim) {
                    // The step in the middle, where both sides have it, is the first one's.
                    if (Warp::kSides == 2 && Warp::kDimSteps % 2 != 0 && dim < 2 && warp.side == 1)
                        continue;
                    *reinterpret_cast<unsigned*>(to + dim * 16) =
                        T::pair(out[block][dim][2 * half] * end.norm,
                                out[block][dim][2 * half + 1] * end.norm);
                }
                if (params.lse != nullptr && packed.valid && warp.lane % 4 == 0 && warp.side == 0) {
                    params.lse[query_offset_of(params.lse_strides, request, packed)] = end.lse;
                }
            }
        }
        if constexpr (Warp::kSides == 1) {
            __syncwarp();
        } else {
            __syncthreads();
        }
        constexpr int chunks = C::head_dim / 8;
        constexpr int rows_a_side = Warp::kRows / Warp::kSides;
        for (int i = warp.lane; i < rows_a_side * chunks; i += 32) {
            const int row = warp.first_row + warp.side * rows_a_side + i / chunks;
            const int chunk = i % chunks;
            const PackedRow packed = packed_row(params, request, kv_head, first_row() + row);
            if (!packed.valid) continue;
            T* to =
                static_cast<T*>(params.out) + query_offset_of(params.out_strides, request, packed);
            store_vector(reinterpret_cast<unsigned*>(to + chunk * 8),
                         load_vector<4>(reinterpret_cast<const unsigned*>(
                             shared_memory() + row * kRowBytes + chunk * 16)));
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kAttentionThreads, PrefillMma<C>::kBlocksAnSm)
    attn_prefill_mma(const __grid_constant__ AttentionParams params) {
    PrefillMma<C>(params).run();
}

}  // namespace jitney
