// Twin of kernel_sources/common/proxy.cuh.
#pragma once

#include "common/builtins.cuh"
#include "tests/emulator/machine/async.hpp"

namespace jitney {

JITNEY_DEVICE void fence_shared_for_async() {
    emulator::fence_for_agents();
}

JITNEY_DEVICE void fence_made_barriers() {
    emulator::fence_made_barriers();
}

}  // namespace jitney
