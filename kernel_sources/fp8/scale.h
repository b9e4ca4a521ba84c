// The numbers between values and their codes, for host and device alike:
//
//     code = cast(x * multiplier)      x is about code * scale      scale = 1 / multiplier
//
// The multiplier takes amax, the largest |x|, to the largest number of the format. A GEMM of codes
// is corrected by the product of its operands' scales. Divisions are rounded correctly on both
// sides (NVRTC's default), so that host and device agree bit for bit.
#pragma once

namespace jitney {

constexpr float kE4m3Largest = 448.0f;
constexpr float kE5m2Largest = 57344.0f;

// amax / largest would not do where amax is 0, infinite or NaN.
constexpr bool is_usable_amax(float amax) {
    return amax > 0.0f && amax <= 3.402823466e38f;
}

// (largest / amax) / 2^margin, for a usable amax. An amax so small that the multiplier overflows
// gets the largest finite one.
constexpr float fp8_multiplier(float amax, float largest, float margin_power) {
    const float multiplier = largest / amax / margin_power;
    return multiplier <= 3.402823466e38f ? multiplier : 3.402823466e38f;
}

// Of delayed scaling: of the amax of steps before. One that is not usable keeps the multiplier.
constexpr float next_fp8_multiplier(float multiplier, float amax, float largest,
                                    float margin_power) {
    return is_usable_amax(amax) ? fp8_multiplier(amax, largest, margin_power) : multiplier;
}

// Of dynamic scaling: of the tensor's own amax.
constexpr float dynamic_fp8_multiplier(float amax, float largest) {
    return is_usable_amax(amax) ? fp8_multiplier(amax, largest, 1.0f) : 1.0f;
}

constexpr float fp8_scale(float multiplier) {
    return 1.0f / multiplier;
}

}  // namespace jitney
