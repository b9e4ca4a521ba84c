// The sixteen barriers of a block by their number; number 0 is that of __syncthreads. `threads`, a
// multiple of 32, is how many take part, those that only arrive counted in.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

// Until all have come.
JITNEY_DEVICE void named_barrier_wait(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Comes, and goes on.
JITNEY_DEVICE void named_barrier_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace jitney
