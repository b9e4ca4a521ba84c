// Twin of kernel_sources/common/grid_dependency.cuh: one grid runs at a time, and the machine sees
// to it that nothing is touched before the wait.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE void release_next_grid() {}

JITNEY_DEVICE void wait_for_previous_grid() {
    emulator::wait_for_previous_grid();
}

}  // namespace jitney
