// The few functions whose machine instruction is named: base-2 exponential and logarithm.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

JITNEY_DEVICE float infinity() {
    return __int_as_float(0x7f800000);
}

// 2^x to about 2 ulp; 2^-inf is 0.
JITNEY_DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// log2(x) to about 1 ulp; log2(0) is -inf.
JITNEY_DEVICE float log2_fast(float x) {
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 / x to about 1 ulp.
JITNEY_DEVICE float reciprocal_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace jitney
