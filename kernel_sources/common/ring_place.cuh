// A place in a ring of stages, and the phase of the stage's barriers (mbarrier.cuh): 0 in the first
// round, then 1, 0...
#pragma once

#include "common/builtins.cuh"

namespace jitney {

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

}  // namespace jitney
