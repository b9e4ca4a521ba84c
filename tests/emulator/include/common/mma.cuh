// Twin of kernel_sources/common/mma.cuh.
#pragma once

#include "common/builtins.cuh"
#include "common/constants.h"
#include "tests/emulator/twins/tensor_core.hpp"

namespace jitney {

template <int format>
JITNEY_DEVICE void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                emulator::Where where = emulator::Where::here()) {
    static_assert(format == kBf16 || format == kFp16);
    emulator::mma_m16n8k16(format == kBf16, c, a, b0, b1, where);
}

}  // namespace jitney
