// The larger of two numbers, NaN where one of them is: fmaxf gives the other one then.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE float max_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a > b || a != a ? a : b;
#endif
}

}  // namespace jitney
