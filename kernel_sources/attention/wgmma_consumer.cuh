// A warpgroup of attn_prefill_wgmma that multiplies: 64 rows of a tile with all keys that they see.
// While it makes weights of the scores of one tile of keys, the product of the weights before with
// their values runs. The scheme is FlashAttention-3's (Shah et al. 2024, arXiv:2407.08608).
#pragma once

#include "attention/layout.h"
#include "attention/logits.cuh"
#include "attention/masking.cuh"
#include "attention/wgmma_memory.cuh"
#include "common/element.cuh"
#include "common/named_barrier.cuh"
#include "common/wgmma.cuh"

namespace jitney {

template <class C>
struct WgmmaConsumer {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;
    using T = Element<C::format>;

    static constexpr int kConsumers = wgmma_consumers(C::tile_m);
    static constexpr int kKeyBlocks = C::tile_n / 8;
    static constexpr int kKeySteps = C::tile_n / 16;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    static constexpr int kDimBlocks = mma_dim(C::head_dim_v) / 8;
    static constexpr int kAllConsumers = 1;  // a named barrier

    using Scores = float[kKeyBlocks][4];
    using Weights = unsigned[kKeySteps][4];
    using Output = float[kDimBlocks][4];

    // A tile of keys of a tile of rows.
    struct Work {
        int place;  // of the note on the tile of rows
        int key;
        int steps_behind;

        JITNEY_DEVICE const Note& note() const { return *Memory::note(place); }
    };

    const PrefillWgmmaParams& params;
    int consumer;  // the warpgroup's number
    bool speaks;   // for its warp
    RingPlace<C::q_stages> q;
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    RingPlace<kWgmmaNotes> notes;

    JITNEY_DEVICE explicit WgmmaConsumer(const PrefillWgmmaParams& p)
        : params(p),
          consumer(warp_index() / 4 - 1),  // the producer's warpgroup comes first
          speaks(threadIdx.x % kWarpSize == 0) {}

    // Read anew, since what is needed now and then has no registers in the loop.
    JITNEY_DEVICE static int lane() { return reread_thread_index() % kWarpSize; }

    // This warp has read what the barrier told to be full.
    JITNEY_DEVICE void release(SharedAddress full) const {
        if (speaks) barrier_arrive(Memory::empty_of(full));
    }

    // The first work on the next tile of rows; false: there is none any more.
    JITNEY_DEVICE bool find(Work& work) {
        barrier_wait(Memory::note_full(notes.stage), notes.phase);
        work.place = notes.stage;
        const Note& note = work.note();
        const int key_tiles = same_in_warp(note.key_tiles);
        if (key_tiles == 0) return false;
        const int step = first_step(work);
        work.key = same_in_warp(note.key_of(step));
        work.steps_behind = key_tiles - 1 - step;
        notes.advance();
        return true;
    }

    // The step behind this one, of the next tile of rows where that ends.
    JITNEY_DEVICE bool step_on(Work& work) {
        if (work.steps_behind == 0) return find(work);
        work.key -= C::tile_n;
        --work.steps_behind;
        return true;
    }

    JITNEY_DEVICE int first_step(const Work& work) const {
        return same_in_warp(work.note().first_step[consumer]);
    }

    // Until the keys are there, and Q where the tile of rows is a fresh one.
    JITNEY_DEVICE void wait_for_keys(const Work& work, bool fresh) {
        if (fresh) {
            barrier_wait(Memory::q_full(q.stage, consumer), q.phase);
            for (int step = first_step(work); step > 0; --step) {
                barrier_wait(Memory::k_full(k.stage), k.phase);
                release(Memory::k_full(k.stage));
                k.advance();
            }
        }
        barrier_wait(Memory::k_full(k.stage), k.phase);
    }
    JITNEY_DEVICE void release_keys(const Work& work) {
        release(Memory::k_full(k.stage));
        k.advance();
        const bool ends = work.steps_behind == 0;
        if (ends) release(Memory::q_full(q.stage, consumer));
        q.advance_if(ends);
    }
    // Until the values of the first step of a tile of rows are there.
    JITNEY_DEVICE void wait_for_first_values(const Work& work) {
        barrier_wait(Memory::v_full(v.stage), v.phase);
        clear_values_behind(work.note());
        for (int step = first_step(work); step > 0; --step) {
            release(Memory::v_full(v.stage));
            v.advance();
            barrier_wait(Memory::v_full(v.stage), v.phase);
        }
    }

    // Hands the product of Q with the tile of keys in this place of the ring to the tensor cores.
    JITNEY_DEVICE void multiply_keys(Scores& scores) const {
        const WgmmaOperand rows =
            wgmma_operand(Memory::q(q.stage, consumer), C::tile_m * kPanelRowBytes);
        const WgmmaOperand keys = wgmma_operand(Memory::k(k.stage), C::tile_n * kPanelRowBytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < kDimSteps; ++step) {
            wgmma<C::format, false>(
                scores, wgmma_operand_at(rows, k_major_step(step, C::tile_m * kPanelRowBytes)),
                wgmma_operand_at(keys, k_major_step(step, C::tile_n * kPanelRowBytes)), step > 0);
        }
        wgmma_commit();
    }

    // The same of the weights with the tile of values.
    JITNEY_DEVICE void add_values(Output& out, const Weights& weights) const {
        const WgmmaOperand values = wgmma_operand(Memory::v(v.stage), C::tile_n * kPanelRowBytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < kKeySteps; ++step) {
            wgmma<C::format, true>(out, weights[step], wgmma_operand_at(values, n_major_step(step)),
                                   true);
        }
        wgmma_commit();
    }

    JITNEY_DEVICE void pack(Weights& weights, const Scores& scores) const {
#pragma unroll
        for (int step = 0; step < kKeySteps; ++step) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float(&block)[4] = scores[2 * step + i / 2];
                weights[step][i] = T::pair(block[i % 2 * 2], block[i % 2 * 2 + 1]);
            }
        }
    }

    // The lane's rows in the request's packed rows.
    JITNEY_DEVICE int row_of(const Note& note, int half) const {
        return note.first_row + (reread_thread_index() - kWarpgroupThreads) / kWarpSize * 16 +
               lane() / 4 + half * 8;
    }
    JITNEY_DEVICE PackedRow packed(const Note& note, int half) const {
        return packed_row(params.attention, note.request, note.group, row_of(note, half));
    }

    // Edits the logits of a tile of keys, and drops those of keys that do not count.
    JITNEY_DEVICE void edit_and_mask(Scores& scores, const Work& work) const {
        const Note& note = work.note();
        const int lane_key = work.key + 2 * (lane() % 4);
        if constexpr (kEditsLogits<C>) {
            edit_logits<C>(
                params.attention, note.request, scores,
                {row_logits<C>(params.attention, note.request, note.group, row_of(note, 0)),
                 row_logits<C>(params.attention, note.request, note.group, row_of(note, 1))},
                lane_key);
        }
        if (leaves_range<C>(note.every[consumer], work.key, C::tile_n)) {
            const KeyRange keys[2] = {row_keys<C>(params.attention, note.request, packed(note, 0)),
                                      row_keys<C>(params.attention, note.request, packed(note, 1))};
            mask_scores(scores, lane_key, [&keys](int half, int key_of_score) {
                return lies_in<C>(keys[half], key_of_score);
            });
        }
    }

    // What the accumulators have to be scaled by.
    struct Rescale {
        bool any;  // of the warp's rows
        float factor[2];
    };

    // Makes weights of the scores of a tile of keys.
    JITNEY_DEVICE Rescale softmax(Scores& scores, SoftmaxRows& rows, const Work& work,
                                  float scale_log2) const {
        edit_and_mask(scores, work);
        Rescale rescale = {false, {1.0f, 1.0f}};
        float maximum[2];
        const bool rises = row_maxima_by_bits(scores, rows, scale_log2, maximum);
        rescale.any = __any_sync(kAllLanes, rises);
        if (rescale.any) raise_maxima(maximum, rows, scale_log2, rescale.factor);
        weigh_scores_in_pairs(scores, rows, scale_log2);
        return rescale;
    }

    // Values behind the request's last key may be anything; multiplied by weights of 0 they have to
    // be numbers. Where the maps do not end with the keys, the consumers write zeros over them.
    JITNEY_DEVICE void clear_values_behind(const Note& note) const {
        const int key = note.key_of(0);
        const int left = note.request.kv_len - key;
        if (params.attention.kv_lengths == kKvLenFixed || left >= C::tile_n) return;
        constexpr int chunks = kPanelRowBytes / 16;
        const int thread = static_cast<int>(threadIdx.x) - kWarpgroupThreads;
        char* values = shared_memory() + Memory::kLayout.v + v.stage * Memory::kVBytes;
        for (int i = thread; i < (C::tile_n - left) * chunks; i += kConsumers * kWarpgroupThreads) {
#pragma unroll
            for (int panel = 0; panel < wgmma_panels(C::head_dim_v); ++panel) {
                *reinterpret_cast<uint4*>(values + (panel * C::tile_n + left) * kPanelRowBytes +
                                          i * 16) = uint4{};
            }
        }
        fence_shared_for_async();
        named_barrier_wait(kAllConsumers, kConsumers * kWarpgroupThreads);
    }

    // Normalises, and writes the output and the LSE. The four lanes of a row change their parts of
    // four blocks of 8 columns for one whole block each, 16 bytes.
    JITNEY_DEVICE void write(const Work& work, const Output& out, const SoftmaxRows& rows) const {
        const Note& note = work.note();
        const AttentionParams& p = params.attention;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const PackedRow row = packed(note, half);
            const float maximum = log2_shift(rows.maximum[half], logit_scale_log2<C>(p));
            const float sum = warp_sum<4>(rows.sum[half]);
            const RowEnd end = row_end<C>(p, row.head, maximum, row.valid ? sum : 0.0f);
            if (p.lse != nullptr && row.valid && lane() % 4 == 0) {
                p.lse[query_offset_of(p.lse_strides, note.request, row)] = end.lse;
            }
            T* to = static_cast<T*>(p.out) + query_offset_of(p.out_strides, note.request, row);
#pragma unroll
            for (int block = 0; block < kDimBlocks; block += 4) {
                unsigned parts[4] = {};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (block + i < kDimBlocks) {
                        parts[i] = T::pair(out[block + i][2 * half] * end.norm,
                                           out[block + i][2 * half + 1] * end.norm);
                    }
                }
                transpose_quad(parts, lane() % 4);
                const int column = (block + lane() % 4) * 8;
                if (row.valid && column < C::head_dim_v) {
                    *reinterpret_cast<uint4*>(to + column) = {parts[0], parts[1], parts[2],
                                                              parts[3]};
                }
            }
        }
        __syncwarp();
        release(Memory::note_full(work.place));
    }

    // One stream of steps over the tiles of keys of all tiles of rows. While a step's scores become
    // weights, the product of the weights before runs, be they of the same tile of rows or of the
    // last; only then is that written.
    JITNEY_DEVICE void run() {
        const float scale_log2 = logit_scale_log2<C>(params.attention);
        Work now;
        if (!find(now)) return;
        Scores scores;
        Weights weights;
        Output out = {};
        SoftmaxRows rows = empty_rows();

        wait_for_keys(now, true);
        multiply_keys(scores);
        wgmma_wait<0>();
        wgmma_settle(scores);
        release_keys(now);
        softmax(scores, rows, now, scale_log2);
        pack(weights, scores);
        wait_for_first_values(now);

        Work next = now;
        bool fresh = now.steps_behind == 0;  // the next tile of rows begins
        bool more = step_on(next);
        while (more) {
            wait_for_keys(next, fresh);
            multiply_keys(scores);
            add_values(out, weights);
            Work later = next;
            more = step_on(later);
            wgmma_wait<1>();
            wgmma_settle(scores);
            release_keys(next);
            const SoftmaxRows before = rows;
            if (fresh) rows = empty_rows();
            const Rescale rescale = softmax(scores, rows, next, scale_log2);
            const SharedAddress read = Memory::v_full(v.stage);
            v.advance();
            // This wait stands here because the compiler would move arithmetic behind that for the
            // product, but does not move it past a loop.
            if (!fresh) barrier_wait(Memory::v_full(v.stage), v.phase);
            wgmma_wait<0>();
            wgmma_settle(out);
            release(read);
            if (fresh) {
                write(now, out, before);
                wait_for_first_values(next);
#pragma unroll
                for (int i = 0; i < kDimBlocks * 4; ++i)
                    out[i / 4][i % 4] = 0.0f;
            } else if (rescale.any) {
                scale_rows(rescale.factor, out);
            }
            wgmma_settle(scores);  // the weights take registers that the product had
            pack(weights, scores);
            fresh = next.steps_behind == 0;
            now = next;
            next = later;
        }
        add_values(out, weights);
        wgmma_wait<0>();
        wgmma_settle(out);
        write(now, out, rows);
    }
};

}  // namespace jitney
