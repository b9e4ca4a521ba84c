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

// Of fp32.
constexpr float kFloatLargest = 3.402823466e38f;
constexpr float kFloatSmallest = 1.175494351e-38f;  // 2^-126: what is smaller has fewer digits

// amax / largest would not do where amax is 0, infinite or NaN.
constexpr bool is_usable_amax(float amax) {
    return amax > 0.0f && amax <= kFloatLargest;
}

// (largest / amax) / 2^margin, for a usable amax, in one rounding: the first division is exact.
// Neither the multiplier nor its inverse is ever infinite or 0: an amax so small that the
// multiplier overflows gets the largest number, and one so large that it all but vanishes gets the
// smallest, with which not even the largest x saturates.
constexpr float fp8_multiplier(float amax, float largest, float margin_power) {
    const float multiplier = largest / margin_power / amax;
    if (multiplier < kFloatSmallest) return kFloatSmallest;
    return multiplier <= kFloatLargest ? multiplier : kFloatLargest;
}

// Of delayed scaling: of the amax of steps before. One that is not usable keeps the multiplier,
// which is 0 where there was no usable amax yet.
constexpr float next_fp8_multiplier(float multiplier, float amax, float largest,
                                    float margin_power) {
    return is_usable_amax(amax) ? fp8_multiplier(amax, largest, margin_power) : multiplier;
}

// The largest power of two that is not above a multiplier, so that nothing saturates which did not
// before. Its inverse is a power of two as well.
constexpr float fp8_power_of_two(float multiplier) {
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, multiplier) & 0xff800000u);
}

// Of dynamic scaling: of the amax of what is cast itself, 1 where that is not usable.
constexpr float dynamic_fp8_multiplier(float amax, float largest, bool power_of_two = false) {
    if (!is_usable_amax(amax)) return 1.0f;
    const float multiplier = fp8_multiplier(amax, largest, 1.0f);
    return power_of_two ? fp8_power_of_two(multiplier) : multiplier;
}

constexpr float fp8_scale(float multiplier) {
    return 1.0f / multiplier;
}

// What a product of codes is corrected by. It is not infinite, so that a sum of 0 stays 0; where it
// is less than fp32 has numbers for, it is 0, and so is the result.
constexpr float fp8_product_scale(float a, float b) {
    const float product = a * b;
    return product > kFloatLargest ? kFloatLargest : product;
}

}  // namespace jitney
