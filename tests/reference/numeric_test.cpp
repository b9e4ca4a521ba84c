#include "operations/reference/numeric.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using namespace jitney::reference;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What a code means, from the definition of the format.
struct Meaning {
    int exponent_bits;
    int mantissa_bits;
    bool has_infinity;  // else the top exponent holds numbers, and only all ones is NaN

    int bits() const { return 1 + exponent_bits + mantissa_bits; }
    double value(std::uint32_t code) const {
        const std::uint32_t mantissa = code & ((1U << mantissa_bits) - 1);
        const std::uint32_t exponent = (code >> mantissa_bits) & ((1U << exponent_bits) - 1);
        const bool negative = (code >> (bits() - 1)) != 0;
        const int bias = (1 << (exponent_bits - 1)) - 1;
        const bool top = exponent == (1U << exponent_bits) - 1;
        double magnitude = 0.0;
        if (top && has_infinity) {
            magnitude = mantissa == 0 ? kInf : kNan;
        } else if (top && mantissa == (1U << mantissa_bits) - 1) {
            magnitude = kNan;
        } else if (exponent == 0) {
            magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
        } else {
            magnitude = std::ldexp(mantissa + (1U << mantissa_bits),
                                   static_cast<int>(exponent) - bias - mantissa_bits);
        }
        return negative ? -magnitude : magnitude;
    }
};

// Counts instead of a CHECK each: there are hundreds of thousands.
template <typename From, typename To>
void check_every_code(const Meaning& meaning, From from, To to, std::uint32_t max_finite,
                      std::uint32_t overflow) {
    const std::uint32_t codes = 1U << meaning.bits();
    const std::uint32_t sign = codes / 2;
    int wrong_value = 0;
    int wrong_code = 0;
    for (std::uint32_t code = 0; code < codes; ++code) {
        const double expected = meaning.value(code);
        const auto actual = static_cast<double>(from(code));
        if (std::isnan(expected)) {
            if (!std::isnan(actual) || !std::isnan(from(to(actual)))) ++wrong_value;
            continue;
        }
        if (actual != expected || std::signbit(actual) != std::signbit(expected)) ++wrong_value;
        const bool overflows = std::isinf(expected);
        if (to(expected) != (overflows ? (code & sign) | overflow : code)) ++wrong_code;
    }
    CHECK(wrong_value == 0);
    CHECK(wrong_code == 0);

    // Between two neighbours: below the middle, the middle, above it; and both signs.
    int wrong_rounding = 0;
    for (std::uint32_t code = 0; code < max_finite; ++code) {
        const double middle = (meaning.value(code) + meaning.value(code + 1)) / 2;
        const std::uint32_t even = code % 2 == 0 ? code : code + 1;
        if (to(middle) != even || to(-middle) != (even | sign)) ++wrong_rounding;
        const double below = std::nextafter(middle, 0.0);
        if (to(below) != code || to(-below) != (code | sign)) ++wrong_rounding;
        const double above = std::nextafter(middle, kInf);
        if (to(above) != code + 1 || to(-above) != ((code + 1) | sign)) ++wrong_rounding;
    }
    CHECK(wrong_rounding == 0);

    // Beyond the largest finite value: half a step further is the last that does not overflow.
    const double largest = meaning.value(max_finite);
    const double limit = largest + (largest - meaning.value(max_finite - 1)) / 2;
    CHECK(to(std::nextafter(limit, 0.0)) == max_finite);
    CHECK(to(limit) == (overflow == max_finite || max_finite % 2 == 0 ? max_finite : overflow));
    CHECK(to(2 * limit) == overflow);
    CHECK(to(-kInf) == (overflow | sign));
    CHECK(to(kInf) == overflow);
    CHECK(to(std::numeric_limits<double>::denorm_min()) == 0);
    CHECK(to(-std::numeric_limits<double>::denorm_min()) == sign);
}

}  // namespace

TEST_CASE("every fp16 code is decoded and encoded exactly") {
    check_every_code(
        {5, 10, true},
        [](std::uint32_t code) { return from_fp16(static_cast<std::uint16_t>(code)); },
        [](double value) { return std::uint32_t{to_fp16(value)}; }, 0x7BFF, 0x7C00);
}

TEST_CASE("every bf16 code is decoded and encoded exactly") {
    check_every_code(
        {8, 7, true},
        [](std::uint32_t code) { return from_bf16(static_cast<std::uint16_t>(code)); },
        [](double value) { return std::uint32_t{to_bf16(value)}; }, 0x7F7F, 0x7F80);
    int differences = 0;
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const float general = decode<kBf16>(code);
        const float direct = from_bf16(static_cast<std::uint16_t>(code));
        if (general != direct && !(std::isnan(general) && std::isnan(direct))) ++differences;
    }
    CHECK(differences == 0);
}

TEST_CASE("every E4M3 code is decoded and encoded exactly, and saturates at 448") {
    check_every_code(
        {4, 3, false},
        [](std::uint32_t code) { return from_e4m3(static_cast<std::uint8_t>(code)); },
        [](double value) { return std::uint32_t{to_e4m3(value)}; }, 0x7E, 0x7E);
    CHECK(from_e4m3(0x7E) == 448.0F);
    CHECK(to_e4m3(1e30) == 0x7E);
    CHECK(to_e4m3(-kInf) == 0xFE);
    CHECK(to_e4m3(kNan) == 0x7F);
    CHECK(to_e4m3(0x1p-10) == 0x00);  // a tie with the smallest denormal, 2^-9, goes to even
    CHECK(to_e4m3(-0x1p-10) == 0x80);
    CHECK(to_e4m3(0x1.8p-10) == 0x01);
}

TEST_CASE("every E5M2 code is decoded and encoded exactly, and saturates at 57344") {
    check_every_code(
        {5, 2, true}, [](std::uint32_t code) { return from_e5m2(static_cast<std::uint8_t>(code)); },
        [](double value) { return std::uint32_t{to_e5m2(value)}; }, 0x7B, 0x7B);
    CHECK(from_e5m2(0x7B) == 57344.0F);
    CHECK(from_e5m2(0xFC) == -std::numeric_limits<float>::infinity());
    CHECK(to_e5m2(1e30) == 0x7B);
    CHECK(to_e5m2(-kInf) == 0xFB);
    CHECK((to_e5m2(kNan) & 0x7F) == 0x7F);
    CHECK(to_e5m2(0x1p-17) == 0x00);
    CHECK(to_e5m2(0x1.8p-17) == 0x01);
}

TEST_CASE("a double is rounded once, not first to fp32") {
    // A hair above the middle of two bf16 numbers; in fp32 it would be the middle.
    CHECK(from_bf16(to_bf16(1.0 + 0x1p-8 + 0x1p-40)) == 1.0F + 0x1p-7F);
    CHECK(from_fp16(to_fp16(1.0 + 0x1p-11 + 0x1p-40)) == 1.0F + 0x1p-10F);
}
