// Programmatic dependent launch (sm_90+): a grid may begin before its predecessor in the stream has
// ended, and waits for it here. Without that attribute of the launch, or before sm_90, these do
// nothing, and the order of the stream holds.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

// Lets the next grid begin once all blocks of this one have come here, or have ended.
JITNEY_DEVICE void release_next_grid() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the grids before have ended, and what they wrote can be seen.
JITNEY_DEVICE void wait_for_previous_grid() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace jitney
