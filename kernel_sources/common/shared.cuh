// Shared memory by its 32-bit address, as ldmatrix and cp.async take it.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

using SharedAddress = unsigned;

// The address of an object that lies in shared memory.
JITNEY_DEVICE SharedAddress shared_address(const void* pointer) {
    return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

}  // namespace jitney
