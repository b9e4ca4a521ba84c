// Exact conversions between the narrow floating-point formats and double. Every conversion to a
// narrow format rounds once, to nearest, ties to even, straight from the double: going through fp32
// first would round twice.
#pragma once

#include <bit>
#include <cstdint>

namespace jitney::reference {

// A binary format of one sign bit, exponent_bits and mantissa_bits.
struct FloatFormat {
    int exponent_bits;
    int mantissa_bits;
    std::uint32_t max_finite;  // the code of the largest finite value
    std::uint32_t
        infinity;       // the code that overflow gives: infinity, or max_finite where saturating
    std::uint32_t nan;  // the code of the NaN that conversions give

    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
};

inline constexpr FloatFormat kFp16{5, 10, 0x7BFF, 0x7C00, 0x7FFF};
inline constexpr FloatFormat kBf16{8, 7, 0x7F7F, 0x7F80, 0x7FFF};
// The FP8 conversions saturate: what is beyond the largest finite value, infinities included,
// becomes that value. E4M3 has no infinity: its top exponent holds numbers up to 448.
inline constexpr FloatFormat kE4m3{4, 3, 0x7E, 0x7E, 0x7F};
inline constexpr FloatFormat kE5m2{5, 2, 0x7B, 0x7B, 0x7F};

template <FloatFormat format>
constexpr std::uint32_t encode(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint32_t>(bits >> 63) << format.sign_shift();
    const int raw_exponent = static_cast<int>((bits >> 52) & 0x7FF);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (raw_exponent == 0x7FF) return fraction != 0 ? format.nan : sign | format.infinity;
    // Subnormal doubles lie far below half of the smallest subnormal of every format here.
    if (raw_exponent == 0) return sign;

    // The significand, an integer of 53 bits, loses `drop` bits: one more for each binade below the
    // smallest normal number.
    const int biased = raw_exponent - 1023 + format.bias();
    const int below = biased >= 1 ? 0 : 1 - biased;
    const int drop = 52 - format.mantissa_bits + below;
    if (drop > 53) return sign;
    const std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
    const std::uint64_t kept = significand >> drop;
    const std::uint64_t rest = significand & ((std::uint64_t{1} << drop) - 1);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const std::uint64_t round_up = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
    // A normal number's leading bit adds one to the exponent field, and so does a carry.
    const std::uint64_t exponent_field =
        below != 0 ? 0 : static_cast<std::uint64_t>(biased - 1) << format.mantissa_bits;
    const std::uint64_t code = exponent_field + kept + round_up;
    return sign | (code > format.max_finite ? format.infinity : static_cast<std::uint32_t>(code));
}

template <FloatFormat format>
constexpr float decode(std::uint32_t code) {
    const std::uint32_t sign = (code >> format.sign_shift()) << 31;
    const std::uint32_t magnitude = code & ((1U << format.sign_shift()) - 1);
    const int shift = 23 - format.mantissa_bits;
    if (magnitude > format.max_finite) {
        // Above the largest finite code there is the infinity, where the format has one, and NaN.
        const std::uint32_t top = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
        const bool infinite = magnitude == top && format.max_finite < top;
        return std::bit_cast<float>(sign | (infinite ? 0x7F800000U : 0x7FC00000U));
    }
    const std::uint32_t exponent = magnitude >> format.mantissa_bits;
    if (exponent == 0) {
        // Subnormal: the mantissa counts units of the smallest subnormal, a power of two that
        // multiplies exactly. (bf16's are subnormal in fp32 too, so they are made of bits.)
        if constexpr (format.exponent_bits == 8) {
            return std::bit_cast<float>(sign | (magnitude << shift));
        } else {
            const int unit = 1 - format.bias() - format.mantissa_bits + 127;
            const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(unit) << 23);
            const float value = static_cast<float>(magnitude) * scale;
            return sign != 0 ? -value : value;
        }
    }
    const auto rebias = static_cast<std::uint32_t>(127 - format.bias()) << 23;
    return std::bit_cast<float>(sign | ((magnitude << shift) + rebias));
}

constexpr std::uint16_t to_fp16(double value) {
    return static_cast<std::uint16_t>(encode<kFp16>(value));
}
constexpr std::uint16_t to_bf16(double value) {
    return static_cast<std::uint16_t>(encode<kBf16>(value));
}
constexpr std::uint8_t to_e4m3(double value) {
    return static_cast<std::uint8_t>(encode<kE4m3>(value));
}
constexpr std::uint8_t to_e5m2(double value) {
    return static_cast<std::uint8_t>(encode<kE5m2>(value));
}
constexpr float from_fp16(std::uint16_t code) {
    return decode<kFp16>(code);
}
constexpr float from_bf16(std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}
constexpr float from_e4m3(std::uint8_t code) {
    return decode<kE4m3>(code);
}
constexpr float from_e5m2(std::uint8_t code) {
    return decode<kE5m2>(code);
}

}  // namespace jitney::reference
