// How many registers a thread of this warpgroup has from here on (setmaxnreg, exactly sm_90a): a
// multiple of 8 from 24 to 256. All warps of the warpgroup execute it; those that take more wait
// until others have given enough. The kernel has to be bound to a number of threads.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

template <int registers>
JITNEY_DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
JITNEY_DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace jitney
