// What a block of attn_prefill_wgmma keeps in shared memory: the tiles, and the barriers by which
// the warpgroup that brings them and those that multiply them wait for each other.
#pragma once

#include "attention/prefill_wgmma.h"
#include "attention/rows.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/ring_place.cuh"
#include "common/wgmma_operand.cuh"

namespace jitney {

// A tile of rows, and what keys it goes to.
template <class C>
struct WgmmaRows {
    static constexpr int kConsumers = wgmma_consumers(C::tile_m);

    Request request;
    int group;       // of heads, over all of the request
    int first_row;   // of the request's packed rows
    int first_seen;  // the first key that a row sees
    int first_key;   // of the first tile of keys
    int last_tile;   // with a mask: the number of the last tile of keys, counted from the first key
    int key_tiles;   // how many; 0: there is no tile of rows any more
    // Of each consumer's rows: the first step that they see a key of, and the keys that each sees.
    int first_step[kConsumers];  // key_tiles: it has no rows
    KeyRange every[kConsumers];

    JITNEY_DEVICE int last_row(int group_size) const { return request.q_len * group_size - 1; }
};

// With a mask: which tiles of keys, counted from the request's first key, a row keeps a key of.
template <bool mask>
struct WgmmaKeptTiles {};
template <>
struct WgmmaKeptTiles<true> {
    unsigned kept[kWgmmaTileWords];

    JITNEY_DEVICE bool keeps_tile(int tile) const {
        const auto at = static_cast<unsigned>(tile);
        return (kept[at / 32] >> at % 32 & 1u) != 0;
    }
    // The last one before this tile, where there is one.
    JITNEY_DEVICE int tile_before(int tile) const {
        const auto at = static_cast<unsigned>(tile);
        int word = static_cast<int>(at / 32);
        unsigned left = kept[word] & ((1u << at % 32) - 1);
        while (left == 0 && word > 0)
            left = kept[--word];
        return word * 32 + 31 - __clz(static_cast<int>(left));
    }
};

// What the threads of a block have to know of a tile of rows.
template <class C>
struct WgmmaNote : WgmmaRows<C>, WgmmaKeptTiles<C::mask != 0> {
    // Steps go from the last tile of keys to the first: where that begins, and the next.
    JITNEY_DEVICE int last_key() const {
        if constexpr (C::mask != 0) {
            return this->last_tile * C::tile_n;
        } else {
            return this->first_key + (this->key_tiles - 1) * C::tile_n;
        }
    }
    JITNEY_DEVICE int key_before(int key) const {
        if constexpr (C::mask != 0) {
            return this->tile_before(key / C::tile_n) * C::tile_n;
        } else {
            return key - C::tile_n;
        }
    }
    JITNEY_DEVICE int key_of(int step) const {
        int key = last_key();
        if constexpr (C::mask != 0) {
            for (; step > 0; --step)
                key = key_before(key);
            return key;
        } else {
            return key - step * C::tile_n;
        }
    }
};

template <class C>
struct WgmmaMemory {
    // The consumers wait for the next values before they have read the last.
    static_assert(C::stages >= 2);

    static constexpr PrefillWgmmaLayout kLayout = prefill_wgmma_layout(
        C::head_dim, C::head_dim_v, C::tile_m, C::tile_n, C::q_stages, C::stages, C::mask != 0);
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
    // What waits for the copies of values: with a mask somebody looks at them before the consumers.
    JITNEY_DEVICE static SharedAddress v_landed(int stage) {
        return C::mask == 0 ? v_full(stage) : barrier(kNoteBarriers + 2 * kWgmmaNotes + 2 + stage);
    }
    // Behind each barrier for full stands that for empty.
    JITNEY_DEVICE static SharedAddress empty_of(SharedAddress full) { return full + kBarrierBytes; }

    JITNEY_DEVICE static SharedAddress barrier(int number) {
        return shared_address(shared_memory()) + kLayout.barriers + number * kBarrierBytes;
    }
    JITNEY_DEVICE static WgmmaNote<C>* note(int place) {
        constexpr int bytes = wgmma_note_bytes(C::mask != 0);
        static_assert(sizeof(WgmmaNote<C>) <= bytes);
        return reinterpret_cast<WgmmaNote<C>*>(shared_memory() + kLayout.notes + place * bytes);
    }

    // By one thread; a barrier of the block follows. `bringers` tell each that their part of a tile
    // of keys or values is there.
    JITNEY_DEVICE static void make_barriers(int bringers) {
        for (int number = 0; number < kNoteBarriers + 2 * kWgmmaNotes; number += 2) {
            // One thread tells of the rows of Q of its consumer, where the output passes through
            // their memory; of all else all consumers read all.
            int readers = kWarps * kConsumers;
            if (number < kKBarriers) readers = kStagesOutput ? 1 : kWarps;
            const bool keys = number >= kKBarriers && number < kNoteBarriers;
            barrier_make(barrier(number), keys ? bringers : 1);
            barrier_make(barrier(number + 1), readers);
        }
        barrier_make(note_taken(), 1);
        for (int stage = 0; C::mask != 0 && stage < C::stages; ++stage)
            barrier_make(v_landed(stage), 1);
        fence_made_barriers();
    }
};

}  // namespace jitney
