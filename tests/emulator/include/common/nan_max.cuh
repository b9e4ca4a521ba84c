// Twin of kernel_sources/common/nan_max.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE float max_or_nan(float a, float b) {
    if (a != a || b != b) return __int_as_float(0x7fffffff);
    return a > b ? a : b;
}

}  // namespace jitney
