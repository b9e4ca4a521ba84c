// 16-bit and 8-bit floating formats in plain C++, as the GPU's instructions convert them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace jitney::emulator {

constexpr float fp16_value(std::uint16_t bits) {
    // The bits as those of a float are 2^-112 of the value; the product is exact, also for
    // subnormal numbers.
    const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0x7fffu) << 13);
    std::uint32_t value = std::bit_cast<std::uint32_t>(magnitude * 0x1p112f);
    if ((bits & 0x7c00u) == 0x7c00u) value |= 0x7f800000u;  // infinity and NaN
    return std::bit_cast<float>(value | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
}

// Round to nearest even; what is too large becomes infinity.
constexpr std::uint16_t fp16_bits(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // Subnormal: adding 2^-1 lets the addition round to multiples of 2^-24.
        const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(
            sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f)));
    }
    const std::uint32_t rounded = magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<std::uint16_t>(sign | rounded >> 13);
}

constexpr float bf16_value(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t bf16_bits(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// The 8-bit formats by how many bits of exponent they have: E4M3, which has no infinity, and E5M2.
// Round to nearest even; what is too large becomes the largest finite number.
inline std::uint8_t fp8_bits(float x, int exponent_bits) {
    const int mantissa_bits = 7 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int largest = exponent_bits == 4 ? 0x7e : 0x7b;
    const int sign = std::signbit(x) ? 0x80 : 0;
    if (std::isnan(x)) return static_cast<std::uint8_t>(sign | 0x7f);
    if (std::isinf(x)) return static_cast<std::uint8_t>(sign | largest);
    const double magnitude = std::fabs(static_cast<double>(x));
    const int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
    if (exponent > bias + 1) return static_cast<std::uint8_t>(sign | largest);
    // A whole number of the last bit's units; one that is a bit longer is the next binade's first.
    const double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
    const int code = ((exponent + bias - 1) << mantissa_bits) + static_cast<int>(units);
    return static_cast<std::uint8_t>(sign | std::min(code, largest));
}

inline float fp8_value(std::uint8_t bits, int exponent_bits) {
    const int mantissa_bits = 7 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int field = (bits & 0x7f) >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int all_ones = (1 << exponent_bits) - 1;
    float magnitude = field == 0
                          ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                          : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                                       field - bias - mantissa_bits);
    if (exponent_bits == 4 ? (bits & 0x7f) == 0x7f : field == all_ones && mantissa != 0) {
        magnitude = std::bit_cast<float>(0x7fc00000u);
    } else if (exponent_bits == 5 && field == all_ones) {
        magnitude = std::bit_cast<float>(0x7f800000u);
    }
    return std::copysign(magnitude, (bits & 0x80) != 0 ? -1.0f : 1.0f);
}

}  // namespace jitney::emulator
