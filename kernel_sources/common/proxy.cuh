// Fences between the two ways to memory (sm_90+): ordinary loads and stores go one way, the copy
// engine and wgmma the other. What was written by the one is seen by the other only behind a fence
// of the writing thread and a barrier.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

// What this thread stored to shared memory before comes before what wgmma or the copy engine does
// behind the next barrier.
JITNEY_DEVICE void fence_shared_for_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Barriers that this thread made (mbarrier.cuh) can be seen by the copy engine and by the cluster.
JITNEY_DEVICE void fence_made_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace jitney
