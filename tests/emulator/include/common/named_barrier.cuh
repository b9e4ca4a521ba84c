// Twin of kernel_sources/common/named_barrier.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE void named_barrier_wait(int barrier, int threads,
                                      emulator::Where where = emulator::Where::here()) {
    emulator::named_barrier(barrier, threads, true, where);
}

JITNEY_DEVICE void named_barrier_arrive(int barrier, int threads,
                                        emulator::Where where = emulator::Where::here()) {
    emulator::named_barrier(barrier, threads, false, where);
}

}  // namespace jitney
