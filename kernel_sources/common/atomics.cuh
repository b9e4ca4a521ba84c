// Atomics whose ordering is named.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

// *counter = *counter >= last ? 0 : *counter + 1, returning the old value. Acquire and release at
// device scope (sm_70+): what this thread saw before is seen by whoever reads the counter after
// it, and it sees what the earlier ones released.
JITNEY_DEVICE unsigned atomic_inc_acq_rel(unsigned* counter, unsigned last) {
    unsigned old;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(counter), "r"(last)
                 : "memory");
    return old;
}

}  // namespace jitney
