// The formulas between amax, multipliers and scales, in numbers, and what the reference makes of
// them.
#include "operations/fp8_linear/reference.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "operations/reference/numeric.hpp"

namespace jitney::tests {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::min();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The multiplier after a step with this amax, of E4M3, where it was 3 before.
float multiplier_after(float amax, float margin_power) {
    std::array<float, kFp8StateHistory + 1> state{};
    state[kFp8StateMultiplier] = 3.0F;
    state[kFp8StateAmax] = amax;
    Fp8UpdateParams params{};
    params.history = 1;
    params.margin_power = margin_power;
    params.rows[0] = {state.data(), kE4m3Largest, nullptr};
    reference::fp8_update(params);
    CHECK(state[kFp8StateScale] == 1.0F / state[kFp8StateMultiplier]);
    return state[kFp8StateMultiplier];
}

float corrected_by(float a, float b) {
    float product = -1.0F;
    Fp8UpdateParams params{};
    params.products[0] = {&product, &a, &b};
    reference::fp8_update(params);
    return product;
}

}  // namespace

TEST_CASE("the multiplier takes amax to the format's largest number, less the margin") {
    CHECK(multiplier_after(2.0F, 1.0F) == 224.0F);
    CHECK(multiplier_after(2.0F, 8.0F) == 28.0F);
    CHECK(multiplier_after(1000.0F, 0x1p18F) == 448.0F / 0x1p18F / 1000.0F);
    for (const float odd : {0.0F, kInfinity, kNan})
        CHECK(multiplier_after(odd, 4.0F) == 3.0F);
}

TEST_CASE("a multiplier has an inverse, and is one") {
    CHECK(multiplier_after(1e-42F, 1.0F) == kLargest);
    CHECK(multiplier_after(kLargest, 0x1p18F) == kSmallest);
    // The margin counts where the quotient without it lies beyond fp32.
    CHECK(multiplier_after(1e-36F, 4.0F) == 112.0F / 1e-36F);
    for (const float largest : {kE4m3Largest, kE5m2Largest}) {
        for (int exponent = -149; exponent < 128; ++exponent) {
            const float amax = std::ldexp(1.0F, exponent);
            float last = kInfinity;
            for (int margin = 0; margin <= 32; ++margin) {
                const float multiplier = fp8_multiplier(amax, largest, std::ldexp(1.0F, margin));
                CHECK(multiplier >= kSmallest);
                CHECK(multiplier <= kLargest);
                CHECK(multiplier <= last);
                CHECK(fp8_scale(multiplier) > 0.0F);
                CHECK(fp8_scale(multiplier) < kInfinity);
                // Nothing saturates that lies within the tensor's own amax.
                CHECK(amax * multiplier <= largest);
                last = multiplier;
            }
        }
    }
}

TEST_CASE("products of scales are finite, and what lies below fp32 is 0") {
    CHECK(corrected_by(0.5F, 0.25F) == 0.125F);
    CHECK(corrected_by(4e19F, 4e19F) == kLargest);
    CHECK(corrected_by(0x1p126F, 0x1p126F) == kLargest);
    CHECK(corrected_by(1e-30F, 1e-30F) == 0.0F);
    CHECK(corrected_by(fp8_scale(kLargest), 0x1p126F) == 0x1p-2F);
    CHECK(std::isnan(corrected_by(kNan, 1.0F)));
}

TEST_CASE("the largest margin is the last with which the largest value has a code") {
    CHECK(reference::to_e4m3(static_cast<double>(kE4m3Largest) / 0x1p18) == 1);
    CHECK(reference::to_e4m3(static_cast<double>(kE4m3Largest) / 0x1p19) == 0);
    CHECK(reference::to_e5m2(static_cast<double>(kE5m2Largest) / 0x1p32) == 1);
    CHECK(reference::to_e5m2(static_cast<double>(kE5m2Largest) / 0x1p33) == 0);
}

}  // namespace jitney::tests
