// 16-bit floating formats in plain C++, as the GPU's instructions convert them.
#pragma once

#include <bit>
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

}  // namespace jitney::emulator
