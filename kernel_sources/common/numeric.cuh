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

// max(x, y), where a NaN is greater than everything (sm_80+).
JITNEY_DEVICE float max_or_nan(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

// The same as exp2_fast to 3e-6 of the result, by arithmetic alone: where the unit for exponentials
// is what everything waits for, some of them are better made so. At most 2^127; from 2^-127 on down
// the result is 0. Not for NaN.
JITNEY_DEVICE float exp2_by_arithmetic(float x) {
    x = max_or_nan(x, -127.0f);
    // A float this large has no bits for fractions: the sum rounds x, and ends with the integer.
    constexpr float rounder = 12582912.0f;  // 1.5 * 2^23
    const float rounded = __fadd_rn(x, rounder);
    const float rest = x - __fadd_rn(rounded, -rounder);  // -0.5 to 0.5
    float power = 0.009582852f;
    power = __fmaf_rn(power, rest, 0.055906426f);
    power = __fmaf_rn(power, rest, 0.24024099f);
    power = __fmaf_rn(power, rest, 0.69312418f);
    power = __fmaf_rn(power, rest, 1.0f);
    return __uint_as_float(__float_as_uint(power) + (__float_as_uint(rounded) << 23));
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
