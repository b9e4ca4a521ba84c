// Twin of kernel_sources/common/builtins.cuh: the compiler's gifts to a kernel, on the machine.
#pragma once

#include "tests/emulator/twins/atomics.hpp"
#include "tests/emulator/twins/collectives.hpp"
#include "tests/emulator/twins/intrinsics.hpp"
#include "tests/emulator/twins/vector_types.hpp"

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)

#define JITNEY_DEVICE inline

namespace jitney {

JITNEY_DEVICE char* shared_memory() {
    return emulator::shared_memory();
}

template <int bytes>
JITNEY_DEVICE void expect_aligned(const void* address) {
    emulator::expect_aligned(address, bytes);
}

JITNEY_DEVICE void settle(unsigned&) {}

JITNEY_DEVICE int reread_block_index() {
    return static_cast<int>(blockIdx.x);
}
JITNEY_DEVICE int reread_thread_index() {
    return static_cast<int>(threadIdx.x);
}

}  // namespace jitney
