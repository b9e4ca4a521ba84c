#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "operations/reference/numeric.hpp"
#include "tests/emulator/machine/formats.hpp"

using namespace jitney::emulator;

TEST_CASE("every fp16 value converts to fp32 and back") {
    for (unsigned bits = 0; bits < 0x10000u; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = fp16_value(half);
        const int exponent = static_cast<int>(bits >> 10 & 31);
        const int mantissa = static_cast<int>(bits & 1023);
        if (exponent == 31) {
            CHECK((mantissa == 0 ? std::isinf(value) : std::isnan(value)));
            if (mantissa != 0) continue;
        } else {
            const float expected =
                exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
            CHECK(std::fabs(value) == expected);
        }
        CHECK(std::signbit(value) == (bits >= 0x8000u));
        CHECK(fp16_bits(value) == half);
    }
}

TEST_CASE("fp16 rounds to nearest even") {
    for (unsigned bits = 0; bits < 0x7bffu; ++bits) {
        const float low = fp16_value(static_cast<std::uint16_t>(bits));
        const float high = fp16_value(static_cast<std::uint16_t>(bits + 1));
        const float middle = low + (high - low) / 2;
        const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
        CHECK(fp16_bits(middle) == even);
        CHECK(fp16_bits(std::nextafter(middle, low)) == bits);
        CHECK(fp16_bits(std::nextafter(middle, high)) == bits + 1);
    }
    CHECK(fp16_bits(65519.0f) == 0x7bff);
    CHECK(fp16_bits(65520.0f) == 0x7c00);
    CHECK(fp16_bits(-1e30f) == 0xfc00);
    CHECK(fp16_bits(std::numeric_limits<float>::quiet_NaN()) == 0x7fff);
}

TEST_CASE("bf16 rounds to nearest even") {
    CHECK(bf16_bits(1.0f) == 0x3f80);
    CHECK(bf16_bits(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
    CHECK(bf16_bits(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
    CHECK(bf16_bits(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
    CHECK(bf16_bits(std::numeric_limits<float>::max()) == 0x7f80);
    CHECK(bf16_bits(std::numeric_limits<float>::quiet_NaN()) == 0x7fff);
    CHECK(bf16_value(0xbf80) == -1.0f);
}

TEST_CASE("the 8-bit formats agree with the reference") {
    for (unsigned code = 0; code < 0x100u; ++code) {
        const auto bits = static_cast<std::uint8_t>(code);
        const float e4m3 = jitney::reference::from_e4m3(bits);
        const float e5m2 = jitney::reference::from_e5m2(bits);
        CHECK((fp8_value(bits, 4) == e4m3 || (std::isnan(fp8_value(bits, 4)) && std::isnan(e4m3))));
        CHECK((fp8_value(bits, 5) == e5m2 || (std::isnan(fp8_value(bits, 5)) && std::isnan(e5m2))));
    }
    // Every bf16, which holds all ties of both formats, and its neighbours in fp32.
    bool equal = true;
    for (unsigned bits = 0; bits < 0x10000u; ++bits) {
        const std::uint32_t middle = bits << 16;
        if ((middle & 0x7fffffffu) > 0x7f800000u) continue;  // NaN, below
        for (const std::uint32_t each : {middle - 1, middle, middle + 1}) {
            const float x = std::bit_cast<float>(each);
            if (std::isnan(x)) continue;
            equal = equal && fp8_bits(x, 4) == jitney::reference::to_e4m3(static_cast<double>(x)) &&
                    fp8_bits(x, 5) == jitney::reference::to_e5m2(static_cast<double>(x));
        }
    }
    CHECK(equal);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK((fp8_bits(nan, 4) & 0x7f) == 0x7f);
    CHECK((fp8_bits(nan, 5) & 0x7f) > 0x7c);
}
