// Twin of kernel_sources/common/numeric.cuh.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

JITNEY_DEVICE float infinity() {
    return __int_as_float(0x7f800000);
}

// The instruction takes subnormal numbers for 0 and returns none.
JITNEY_DEVICE float exp2_fast(float x) {
    const float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

JITNEY_DEVICE float log2_fast(float x) {
    return log2f(x);
}

JITNEY_DEVICE float reciprocal_fast(float x) {
    const float y = 1.0f / x;
    return fabsf(y) < 0x1p-126f ? copysignf(0.0f, y) : y;
}

}  // namespace jitney
