// Twin of kernel_sources/common/shared.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

using SharedAddress = unsigned;

JITNEY_DEVICE SharedAddress shared_address(const void* pointer,
                                           emulator::Where where = emulator::Where::here()) {
    return emulator::shared_address(pointer, where);
}

template <class T>
JITNEY_DEVICE void store_shared(SharedAddress to, T value,
                                emulator::Where where = emulator::Where::here()) {
    char* const memory = shared_memory();
    *reinterpret_cast<T*>(memory + (to - emulator::shared_address(memory, where))) = value;
}

}  // namespace jitney
