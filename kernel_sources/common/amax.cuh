// The largest magnitude of what a launch sees. Magnitudes are compared as the bits of their floats:
// for numbers that are not negative they order as the numbers do, and NaN lies above infinity, so
// that one NaN makes the result NaN.
#pragma once

#include "common/amax.h"
#include "common/atomics.cuh"
#include "common/warp.cuh"

namespace jitney {

JITNEY_DEVICE unsigned magnitude_bits(float x) {
    return __float_as_uint(x) & 0x7fffffffu;
}

// The largest of a block's threads, in its first thread. `warps` is shared memory, a word a warp,
// that nobody else touches before the next barrier.
template <int threads>
JITNEY_DEVICE unsigned block_max(unsigned value, unsigned* warps) {
    constexpr int count = threads / kWarpSize;
    for (int step = kWarpSize / 2; step > 0; step /= 2)
        value = max(value, __shfl_xor_sync(kAllLanes, value, step));
    const int thread = static_cast<int>(threadIdx.x);
    if (thread % kWarpSize == 0) warps[thread / kWarpSize] = value;
    __syncthreads();
    if (thread == 0) {
        for (int warp = 1; warp < count; ++warp)
            value = max(value, warps[warp]);
    }
    return value;
}

// One thread of each block brings the block's largest magnitude. True for the block that comes
// last, which gets the largest of all; the counters are zero again then.
JITNEY_DEVICE bool merge_amax(AmaxCounters* counters, unsigned largest, unsigned blocks,
                              unsigned& result) {
    atomicMax(&counters->largest, largest);
    if (atomic_inc_acq_rel(&counters->arrived, blocks - 1) != blocks - 1) return false;
    result = atomicExch(&counters->largest, 0u);
    return true;
}

}  // namespace jitney
