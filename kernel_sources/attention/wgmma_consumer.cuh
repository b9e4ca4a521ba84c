// A warpgroup of attn_prefill_wgmma that multiplies: 64 rows of a tile with all keys that they see.
// While it makes weights of the scores of one tile of keys, the product of the weights before with
// their values runs. The scheme is FlashAttention-3's (Shah et al. 2024, arXiv:2407.08608).
#pragma once

#include "attention/layout.h"
#include "attention/masking.cuh"
#include "attention/wgmma_logits.cuh"
#include "attention/wgmma_mask.cuh"
#include "attention/wgmma_memory.cuh"
#include "attention/wgmma_output.cuh"
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

    struct State {
        Scores scores;  // of the step, and then their weights
        Weights weights;
        Output out;
        SoftmaxRows rows;
        WgmmaLogits<C> logits;  // of the step's tile of rows
        WgmmaMask<C> mask;      // of the step to come

        JITNEY_DEVICE explicit State(const AttentionParams& params) : logits(params) {}
    };

    // A tile of keys of a tile of rows.
    struct Work {
        int place;  // of the note on the tile of rows
        int key;
        int next_key;
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
    int q_before = 0;    // the stage of Q of the tile of rows at work
    int staged_in = -1;  // the stage of Q through which the last output passes

    JITNEY_DEVICE explicit WgmmaConsumer(const PrefillWgmmaParams& p)
        : params(p),
          consumer(warp_index() / 4 - 1),  // the producer's warpgroup comes first
          speaks(threadIdx.x % kWarpSize == 0) {}

    // This warp has read what the barrier told to be full.
    JITNEY_DEVICE void release(SharedAddress full) const {
        if (speaks) barrier_arrive(Memory::empty_of(full));
    }

    // The same of what this warp does not read: no lane may still look at the phase when it is
    // over.
    JITNEY_DEVICE void let_by(SharedAddress full) const {
        __syncwarp();
        release(full);
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
        find_next_key(work);
        notes.advance();
        return true;
    }

    JITNEY_DEVICE void find_next_key(Work& work) const {
        if (work.steps_behind > 0) work.next_key = work.note().key_before(work.key);
    }

    JITNEY_DEVICE int first_step(const Work& work) const {
        return same_in_warp(work.note().first_step[consumer]);
    }

    JITNEY_DEVICE void release_note(const Work& work) const {
        __syncwarp();  // all lanes have read it
        release(Memory::note_full(work.place));
    }

    // Until Q is there, and the keys of the first step.
    JITNEY_DEVICE void wait_for_first_keys(const Work& work) {
        barrier_wait(Memory::q_full(q.stage, consumer), q.phase);
        barrier_wait(Memory::k_full(k.stage), k.phase);
        for (int step = first_step(work); step > 0; --step) {
            let_by(Memory::k_full(k.stage));
            k.advance();
            barrier_wait(Memory::k_full(k.stage), k.phase);
        }
    }
    JITNEY_DEVICE void release_keys(const Work& work) {
        release(Memory::k_full(k.stage));
        k.advance();
        const bool ends = work.steps_behind == 0;
        if (!Memory::kStagesOutput && ends) release(Memory::q_full(q.stage, consumer));
        q.advance_if(ends);
    }
    JITNEY_DEVICE void release_values() {
        release(Memory::v_full(v.stage));
        v.advance();
    }
    // The memory through which the last output went is free for rows of Q once that was read.
    JITNEY_DEVICE void release_staged() {
        if constexpr (Memory::kStagesOutput) {
            if (staged_in >= 0 && threadIdx.x % kWarpgroupThreads == 0) {
                bulk_store_wait_read<0>();
                barrier_arrive(Memory::empty_of(Memory::q_full(staged_in, consumer)));
            }
            staged_in = -1;
        }
    }
    // Until the values of the first step of a tile of rows are there.
    JITNEY_DEVICE void wait_for_first_values(const Work& work) {
        barrier_wait(Memory::v_full(v.stage), v.phase);
        clear_unseen_values(work.note(), 0);
        const int first = first_step(work);
        for (int step = 1; step <= first; ++step) {
            let_by(Memory::v_full(v.stage));
            v.advance();
            barrier_wait(Memory::v_full(v.stage), v.phase);
            clear_unseen_values(work.note(), step);
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

    // Whether not every row sees all keys of the tile; read ahead of the scores.
    JITNEY_DEVICE bool needs_masking(const Work& work) const {
        return leaves_range<C>(work.note().every[consumer], work.key, C::tile_n);
    }

    // The lane's first key of a tile of keys.
    JITNEY_DEVICE static int lane_key(const Work& work) {
        return work.key + 2 * (WgmmaOutput<C>::lane() % 4);
    }

    // The place of one of the lane's rows among the keys. Heads that share a tile are a power of
    // two.
    JITNEY_DEVICE auto places_of(const Note& note) const {
        return [this, &note](int half) {
            const int row = WgmmaOutput<C>{params, consumer}.row(note, half);
            return (row >> (31 - __clz(params.attention.group))) + note.request.query_offset();
        };
    }

    // The numbers that edit the logits of one of the lane's rows.
    JITNEY_DEVICE auto row_logits_of(const Note& note) const {
        return [this, &note](int half) {
            return row_logits<C>(params.attention, note.request, note.group,
                                 WgmmaOutput<C>{params, consumer}.row(note, half));
        };
    }

    // Edits the logits of a tile of keys, and drops those of keys that do not count.
    JITNEY_DEVICE void edit_and_mask(State& state, const Work& work, bool masks) const {
        const Note& note = work.note();
        const WgmmaOutput<C> rows = {params, consumer};
        const int first_key = lane_key(work);
        state.logits.edit(params.attention, note.request, state.scores, state.rows, first_key,
                          row_logits_of(note));
        state.mask.apply(state.scores, rows.lane());
        if (masks) {
            int first[2];       // the lane's first key, from the first that the row sees
            unsigned count[2];  // that it sees
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const KeyRange keys =
                    row_keys<C>(params.attention, note.request, rows.packed(note, half));
                first[half] = first_key - keys.first;
                count[half] = static_cast<unsigned>(keys.end - keys.first);
            }
            mask_scores(state.scores, 0, [&first, &count](int half, int key_of_lane) {
                return static_cast<unsigned>(first[half] + key_of_lane) < count[half];
            });
        }
    }

    // What the accumulators have to be scaled by.
    struct Rescale {
        bool any;  // of the warp's rows
        float factor[2];
    };

    // Makes weights of the scores of a tile of keys.
    JITNEY_DEVICE Rescale softmax(State& state, const Work& work, bool masks) const {
        edit_and_mask(state, work, masks);
        Rescale rescale = {false, {1.0f, 1.0f}};
        float maximum[2];
        const bool rises = state.logits.maxima(state.scores, state.rows, maximum);
        rescale.any = __any_sync(kAllLanes, rises);
        if (rescale.any) {
            state.logits.raise(params.attention, maximum, state.rows, rescale.factor);
        }
        state.logits.weigh(params.attention, state.scores, state.rows);
        return rescale;
    }

    // Values behind the request's last key, and before the first that a row sees, may be anything;
    // multiplied by weights of 0 they have to be numbers. Where what was copied does not end with
    // the keys, as on pages and where the maps know other lengths, the consumers write zeros over
    // them. All of them come here for a step that is one of a tile's first or last. Beside a mask
    // others do it.
    JITNEY_DEVICE void clear_unseen_values(const Note& note, int step) const {
        if (C::mask != 0) return;
        constexpr bool both_ends = C::kv == kPagedKv && C::window != 0;
        const bool ends = both_ends && step == note.key_tiles - 1;
        if (step != 0 && !ends) return;
        if (C::kv == kPagedKv ? params.box_keys == 0 : params.attention.kv_lengths == kKvLenFixed) {
            return;
        }
        const int key = note.key_of(step);
        const int behind = step == 0 ? note.request.kv_len - key : C::tile_n;
        const int before = ends ? note.first_seen - key : 0;
        if (behind >= C::tile_n && before <= 0) return;
        if (before > 0) clear_values(0, before);
        if (behind < C::tile_n) clear_values(behind, C::tile_n);
        fence_shared_for_async();
        named_barrier_wait(kAllConsumers, kConsumers * kWarpgroupThreads);
    }
    JITNEY_DEVICE void clear_values(int first, int end) const {
        constexpr int chunks = kPanelRowBytes / 16;
        const int thread = static_cast<int>(threadIdx.x) - kWarpgroupThreads;
        char* values = shared_memory() + Memory::kLayout.v + v.stage * Memory::kVBytes;
        for (int i = thread; i < (end - first) * chunks; i += kConsumers * kWarpgroupThreads) {
#pragma unroll
            for (int panel = 0; panel < wgmma_panels(C::head_dim_v); ++panel) {
                *reinterpret_cast<uint4*>(values + (panel * C::tile_n + first) * kPanelRowBytes +
                                          i * 16) = uint4{};
            }
        }
    }

    // A step of a tile of rows behind its first: while its scores become weights, the product of
    // the weights before runs.
    JITNEY_DEVICE void step_on(State& state, Work& now) {
        now.key = now.next_key;
        --now.steps_behind;
        find_next_key(now);
        barrier_wait(Memory::k_full(k.stage), k.phase);
        multiply_keys(state.scores);
        add_values(state.out, state.weights);
        const bool masks = needs_masking(now);
        state.logits.look_at(lane_key(now), places_of(now.note()));
        wgmma_wait<1>();
        wgmma_settle(state.scores);
        release_keys(now);
        const Rescale rescale = softmax(state, now, masks);
        if (now.steps_behind > 0) state.mask.load(params.attention, now.note(), now.next_key);
        const SharedAddress read = Memory::v_full(v.stage);
        v.advance();
        // This wait stands here because the compiler would move arithmetic behind that for the
        // product, but does not move it past a loop.
        barrier_wait(Memory::v_full(v.stage), v.phase);
        if constexpr (C::kv == kPagedKv && C::window != 0 && C::mask == 0) {
            if (now.steps_behind == 0) clear_unseen_values(now.note(), now.note().key_tiles - 1);
        }
        wgmma_wait<0>();
        wgmma_settle(state.out);
        release(read);
        if (rescale.any) scale_rows(rescale.factor, state.out);
        wgmma_settle(state.scores);  // the weights take registers that the product had
        pack(state.weights, state.scores);
    }

    // Rows behind a packed request's last are those of the next request: their maxima begin where
    // no score rises above them, so that they never have a say in when the warp scales its rows.
    JITNEY_DEVICE SoftmaxRows begin_rows(const Work& work) const {
        SoftmaxRows begun = empty_rows();
        if constexpr (C::queries == kPackedQueries) {
            const WgmmaOutput<C> rows = {params, consumer};
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const bool own =
                    rows.row(work.note(), half) <= work.note().last_row(params.attention.group);
                if (!own) begun.maximum[half] = infinity();
            }
        }
        return begun;
    }

    // The first step of a tile of rows. Where there is one at work, its last product runs
    // meanwhile, and then it is written.
    template <bool ends_one>
    JITNEY_DEVICE void step_over(State& state, const Work& now, const Work& next) {
        wait_for_first_keys(next);
        multiply_keys(state.scores);
        if constexpr (ends_one) add_values(state.out, state.weights);
        if constexpr (ends_one) release_staged();
        const bool masks = needs_masking(next);
        state.logits.look_at(lane_key(next), places_of(next.note()));
        wgmma_wait<ends_one ? 1 : 0>();
        wgmma_settle(state.scores);
        const int q_stage = q_before;
        q_before = q.stage;
        release_keys(next);
        const SoftmaxRows before = state.rows;
        state.rows = begin_rows(next);
        softmax(state, next, masks);
        if (next.steps_behind > 0) state.mask.load(params.attention, next.note(), next.next_key);
        if constexpr (ends_one) {
            barrier_wait(Memory::v_full(v.stage), v.phase);  // it has ended; as in step_on
            wgmma_wait<0>();
            wgmma_settle(state.out);
            release_values();
            write(now, q_stage, state.out, before);
        }
        wait_for_first_values(next);
#pragma unroll
        for (int i = 0; i < kDimBlocks * 4; ++i)
            state.out[i / 4][i % 4] = 0.0f;
        wgmma_settle(state.scores);
        pack(state.weights, state.scores);
    }

    // Ends the tile of rows at work where no other follows at once.
    JITNEY_DEVICE void end(State& state, const Work& now) {
        add_values(state.out, state.weights);
        release_staged();
        wgmma_wait<0>();
        wgmma_settle(state.out);
        release_values();
        write(now, q_before, state.out, state.rows);
        release_staged();
    }

    // Lets a tile of which the warpgroup has no rows go by.
    JITNEY_DEVICE void pass(const Work& work) {
        barrier_wait(Memory::q_full(q.stage, consumer), q.phase);
        if (Memory::kStagesOutput) {
            staged_in = q.stage;
            release_staged();
        } else {
            let_by(Memory::q_full(q.stage, consumer));
        }
        q.advance();
        const int steps = same_in_warp(work.note().key_tiles);
        for (int step = 0; step < steps; ++step) {
            barrier_wait(Memory::k_full(k.stage), k.phase);
            let_by(Memory::k_full(k.stage));
            k.advance();
            barrier_wait(Memory::v_full(v.stage), v.phase);
            clear_unseen_values(work.note(), step);
            let_by(Memory::v_full(v.stage));
            v.advance();
        }
        release_note(work);
    }

    JITNEY_DEVICE void write(const Work& work, int q_stage, const Output& out,
                             const SoftmaxRows& rows) {
        WgmmaOutput<C>{params, consumer}.write(work.note(), q_stage, out, rows);
        staged_in = q_stage;
        release_note(work);
    }

    // One stream of steps over the tiles of keys of all tiles of rows.
    JITNEY_DEVICE void run() {
        State state(params.attention);
        Work now = {};
        Work next;
        bool works = false;
        while (find(next)) {
            const bool passes = next.steps_behind < 0;
            if (passes) {
                if (works) end(state, now);
                pass(next);
            } else {
                const WgmmaOutput<C> rows = {params, consumer};
                state.logits.begin(row_logits_of(next.note()));
                state.mask.begin(params.attention, next.note(), rows.row(next.note(), 0));
                state.mask.load(params.attention, next.note(), next.key);
                if (works) {
                    step_over<true>(state, now, next);
                } else {
                    step_over<false>(state, now, next);
                }
                now = next;
                while (now.steps_behind > 0)
                    step_on(state, now);
            }
            works = !passes;
        }
        if (works) end(state, now);
    }
};

}  // namespace jitney
