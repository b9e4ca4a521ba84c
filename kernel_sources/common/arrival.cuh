// Blocks that work for one result: the last of them to arrive finishes it.
#pragma once

#include "common/atomics.cuh"

namespace jitney {

// True in every thread of the block that arrives last of `count`. The counter wraps back to zero,
// so that nothing has to be cleared between launches. `flag` is a word of shared memory that
// nothing else uses. The barriers extend the order that the one atomic makes to all threads of the
// block.
JITNEY_DEVICE bool arrive_last(unsigned* counter, unsigned count, unsigned* flag) {
    __syncthreads();
    if (threadIdx.x == 0) *flag = atomic_inc_acq_rel(counter, count - 1) == count - 1 ? 1u : 0u;
    __syncthreads();
    return *flag != 0;
}

}  // namespace jitney
