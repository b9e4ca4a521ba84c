// What a block of attn_prefill_wgmma keeps in shared memory: the tiles, and the barriers by which
// the warpgroup that brings them and those that multiply them wait for each other.
#pragma once

#include "attention/prefill_wgmma.h"
#include "attention/rows.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/wgmma_operand.cuh"

namespace jitney {

// A place in a ring of stages, and the phase of its barriers: 0 in the first round, then 1, 0...
template <int stages>
struct RingPlace {
    int stage = 0;
    unsigned phase = 0;

    JITNEY_DEVICE void advance() { advance_if(true); }
    // Without a branch, so that the compiler sees that the place is the same in all lanes.
    JITNEY_DEVICE void advance_if(bool on) {
        const int next = stage + (on ? 1 : 0);
        const bool wraps = next == stages;
        stage = wraps ? 0 : next;
        phase ^= wraps ? 1u : 0u;
    }
};

// What the threads of a block have to know of a tile of rows.
template <class C>
struct WgmmaNote {
    static constexpr int kConsumers = wgmma_consumers(C::tile_m);

    Request request;
    int group;      // of heads, over all of the request
    int first_row;  // of the request's packed rows
    int first_key;
    int key_tiles;  // that follow it; 0: there is no tile of rows any more
    // Of each consumer's rows: the first step that they see a key of, and the keys that each sees.
    int first_step[kConsumers];  // key_tiles: it has no rows
    KeyRange every[kConsumers];

    // Steps go from the last tile of keys to the first.
    JITNEY_DEVICE int key_of(int step) const {
        return first_key + (key_tiles - 1 - step) * C::tile_n;
    }
};

template <class C>
struct WgmmaMemory {
    // The consumers wait for the next values before they have read the last.
    static_assert(C::stages >= 2);

    static constexpr PrefillWgmmaLayout kLayout = prefill_wgmma_layout(
        C::head_dim, C::head_dim_v, C::tile_m, C::tile_n, C::q_stages, C::stages);
    static constexpr int kConsumers = wgmma_consumers(C::tile_m);
    static constexpr bool kStagesOutput = wgmma_stages_output(C::q_stages);
    static constexpr int kQBytes = wgmma_tile_bytes(C::tile_m, C::head_dim);
    static constexpr int kKBytes = wgmma_tile_bytes(C::tile_n, C::head_dim);
    static constexpr int kVBytes = wgmma_tile_bytes(C::tile_n, C::head_dim_v);
    // A warp tells by one of its lanes that it has read a tile.
    static constexpr int kWarps = 4;

    // The rows of Q of a consumer: the first panel's.
    JITNEY_DEVICE static SharedAddress q(int stage, int consumer) {
        return shared_address(shared_memory()) + stage * kQBytes +
               consumer * kWarpgroupRows * kPanelRowBytes;
    }
    JITNEY_DEVICE static SharedAddress k(int stage) {
        return shared_address(shared_memory()) + kLayout.k + stage * kKBytes;
    }
    JITNEY_DEVICE static SharedAddress v(int stage) {
        return shared_address(shared_memory()) + kLayout.v + stage * kVBytes;
    }

    static constexpr int kKBarriers = 2 * C::q_stages * kConsumers;
    static constexpr int kVBarriers = kKBarriers + 2 * C::stages;
    static constexpr int kNoteBarriers = kVBarriers + 2 * C::stages;

    JITNEY_DEVICE static SharedAddress q_full(int stage, int consumer) {
        return barrier(2 * (stage * kConsumers + consumer));
    }
    JITNEY_DEVICE static SharedAddress k_full(int stage) { return barrier(kKBarriers + 2 * stage); }
    JITNEY_DEVICE static SharedAddress v_full(int stage) { return barrier(kVBarriers + 2 * stage); }
    JITNEY_DEVICE static SharedAddress note_full(int place) {
        return barrier(kNoteBarriers + 2 * place);
    }
    // The producer has begun with the tile of rows of the newest note.
    JITNEY_DEVICE static SharedAddress note_taken() {
        return barrier(kNoteBarriers + 2 * kWgmmaNotes);
    }
    // Behind each barrier for full stands that for empty.
    JITNEY_DEVICE static SharedAddress empty_of(SharedAddress full) { return full + kBarrierBytes; }

    JITNEY_DEVICE static SharedAddress barrier(int number) {
        return shared_address(shared_memory()) + kLayout.barriers + number * kBarrierBytes;
    }
    JITNEY_DEVICE static WgmmaNote<C>* note(int place) {
        static_assert(sizeof(WgmmaNote<C>) <= kWgmmaNoteBytes);
        return reinterpret_cast<WgmmaNote<C>*>(shared_memory() + kLayout.notes +
                                               place * kWgmmaNoteBytes);
    }

    // By one thread; a barrier of the block follows.
    JITNEY_DEVICE static void make_barriers() {
        for (int number = 0; number < kNoteBarriers + 2 * kWgmmaNotes; number += 2) {
            // One thread tells of the rows of Q of its consumer, where the output passes through
            // their memory; of all else all consumers read all.
            int readers = kWarps * kConsumers;
            if (number < kKBarriers) readers = kStagesOutput ? 1 : kWarps;
            barrier_make(barrier(number), 1);
            barrier_make(barrier(number + 1), readers);
        }
        barrier_make(note_taken(), 1);
        fence_made_barriers();
    }
};

}  // namespace jitney
