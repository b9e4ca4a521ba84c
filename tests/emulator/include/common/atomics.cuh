// Twin of kernel_sources/common/atomics.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE unsigned atomic_inc_acq_rel(unsigned* counter, unsigned last,
                                          emulator::Where where = emulator::Where::here()) {
    return atomicInc(counter, last, where);
}

}  // namespace jitney
