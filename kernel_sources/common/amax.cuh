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

// The largest of a block's threads in two halves, between which stands a barrier: every warp keeps
// its own in shared memory, a word a warp, and whoever reads all of them has the block's.
JITNEY_DEVICE void keep_warp_max(unsigned value, unsigned* warps) {
    for (int step = kWarpSize / 2; step > 0; step /= 2)
        value = max(value, __shfl_xor_sync(kAllLanes, value, step));
    const int thread = static_cast<int>(threadIdx.x);
    if (thread % kWarpSize == 0) warps[thread / kWarpSize] = value;
}
template <int threads>
JITNEY_DEVICE unsigned max_of_warps(const unsigned* warps) {
    unsigned value = warps[0];
    for (int warp = 1; warp < threads / kWarpSize; ++warp)
        value = max(value, warps[warp]);
    return value;
}

// Both halves; the first thread has the result.
template <int threads>
JITNEY_DEVICE unsigned block_max(unsigned value, unsigned* warps) {
    keep_warp_max(value, warps);
    __syncthreads();
    return threadIdx.x == 0 ? max_of_warps<threads>(warps) : value;
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
