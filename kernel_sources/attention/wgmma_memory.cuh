// What a block of attn_prefill_wgmma keeps in shared memory: the tiles, and the barriers by which
// the warpgroup that brings them and those that multiply them wait for each other.
#pragma once

#include "attention/prefill_wgmma.h"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"

namespace jitney {

// A place in a ring of stages, and the phase of its barriers: 0 in the first round, then 1, 0...
template <int stages>
struct RingPlace {
    int stage = 0;
    unsigned phase = 0;

    JITNEY_DEVICE void advance() {
        if (++stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

template <class C>
struct WgmmaMemory {
    // The consumers wait for the next values before they have read the last.
    static_assert(C::stages >= 2);

    static constexpr PrefillWgmmaLayout kLayout =
        prefill_wgmma_layout(C::head_dim, C::head_dim_v, C::tile_m, C::tile_n, C::stages);
    static constexpr int kQBytes = wgmma_tile_bytes(C::tile_m, C::head_dim);
    static constexpr int kKBytes = wgmma_tile_bytes(C::tile_n, C::head_dim);
    static constexpr int kVBytes = wgmma_tile_bytes(C::tile_n, C::head_dim_v);
    // A warp of the consumers tells by one of its lanes that it has read a tile.
    static constexpr int kReaders = wgmma_consumers(C::tile_m) * 4;

    JITNEY_DEVICE static SharedAddress q() { return shared_address(shared_memory()); }
    JITNEY_DEVICE static SharedAddress k(int stage) { return q() + kLayout.k + stage * kKBytes; }
    JITNEY_DEVICE static SharedAddress v(int stage) { return q() + kLayout.v + stage * kVBytes; }

    JITNEY_DEVICE static SharedAddress q_full() { return barrier(0); }
    JITNEY_DEVICE static SharedAddress q_empty() { return barrier(1); }
    JITNEY_DEVICE static SharedAddress k_full(int stage) { return barrier(2 + stage); }
    JITNEY_DEVICE static SharedAddress k_empty(int stage) { return barrier(2 + C::stages + stage); }
    JITNEY_DEVICE static SharedAddress v_full(int stage) {
        return barrier(2 + 2 * C::stages + stage);
    }
    JITNEY_DEVICE static SharedAddress v_empty(int stage) {
        return barrier(2 + 3 * C::stages + stage);
    }
    JITNEY_DEVICE static SharedAddress number_full(int place) {
        return barrier(2 + 4 * C::stages + place);
    }
    JITNEY_DEVICE static SharedAddress number_empty(int place) {
        return barrier(4 + 4 * C::stages + place);
    }
    JITNEY_DEVICE static SharedAddress barrier(int number) {
        return q() + kLayout.barriers + number * kBarrierBytes;
    }
    JITNEY_DEVICE static int* tile_number(int place) {
        return reinterpret_cast<int*>(shared_memory() + kLayout.tile_numbers) + place;
    }

    // By one thread; a barrier of the block follows.
    JITNEY_DEVICE static void make_barriers() {
        barrier_make(q_full(), 1);
        barrier_make(q_empty(), kReaders);
        for (int stage = 0; stage < C::stages; ++stage) {
            barrier_make(k_full(stage), 1);
            barrier_make(k_empty(stage), kReaders);
            barrier_make(v_full(stage), 1);
            barrier_make(v_empty(stage), kReaders);
        }
        for (int place = 0; place < 2; ++place) {
            barrier_make(number_full(place), 1);
            barrier_make(number_empty(place), kReaders);
        }
        fence_made_barriers();
    }
};

}  // namespace jitney
