// Shared memory by its 32-bit address, as ldmatrix and cp.async take it.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

using SharedAddress = unsigned;

// The address of an object that lies in shared memory.
JITNEY_DEVICE SharedAddress shared_address(const void* pointer) {
    return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

// Stores there. Loads stay on their side of it, so that what they bring is not held in registers
// for long.
JITNEY_DEVICE void store_shared(SharedAddress to, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}
JITNEY_DEVICE void store_shared(SharedAddress to, unsigned short bits) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(bits) : "memory");
}
JITNEY_DEVICE void store_shared(SharedAddress to, unsigned char bits) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(to), "r"(static_cast<unsigned>(bits)) : "memory");
}

}  // namespace jitney
