// Twin of kernel_sources/common/shared.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

using SharedAddress = unsigned;

JITNEY_DEVICE SharedAddress shared_address(const void* pointer,
                                           emulator::Where where = emulator::Where::here()) {
    return emulator::shared_address(pointer, where);
}

}  // namespace jitney
