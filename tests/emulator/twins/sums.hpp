// How tensor cores add up. Products of two elements are exact in fp32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace jitney::emulator {

// What is added to an accumulator, in the order of k, as fp32 additions are rounded.
inline float add_up(float sum, const float* terms, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        sum += terms[i];
    return sum;
}

// As the units for 8-bit formats of sm_89, sm_90 and sm_120 are known to do it: all terms and the
// accumulator are shifted to where the largest stands, keep 13 bits behind its first, and are added
// up; of the sum, too, 13 bits behind the first are kept. What is left out is cut off.
inline float add_up_short(float sum, const float* terms, unsigned count) {
    constexpr int kBits = 13;
    const auto magnitude = [](float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu; };
    std::uint32_t largest = magnitude(sum);
    for (unsigned i = 0; i < count; ++i)
        largest = std::max(largest, magnitude(terms[i]));
    if (largest == 0 || largest >= 0x7f800000u) return add_up(sum, terms, count);
    const int unit = std::max(static_cast<int>(largest >> 23), 1) - 127 - kBits;
    const double units = std::ldexp(1.0, -unit);
    auto whole = static_cast<std::int64_t>(static_cast<double>(sum) * units);
    for (unsigned i = 0; i < count; ++i)
        whole += static_cast<std::int64_t>(static_cast<double>(terms[i]) * units);
    const auto size = static_cast<std::uint64_t>(whole < 0 ? -whole : whole);
    const int carried = std::max(0, static_cast<int>(std::bit_width(size)) - 1 - kBits);
    const double kept = std::ldexp(static_cast<double>(size >> carried), carried + unit);
    return static_cast<float>(whole < 0 ? -kept : kept);
}

}  // namespace jitney::emulator
