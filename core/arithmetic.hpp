// Whole numbers of blocks, tiles, bytes and steps, exact or at the end of 64 bits: never past it.
#pragma once

#include <cstdint>
#include <limits>

namespace jitney {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

// Of two counts; what would not fit into 64 bits stays above every limit.
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

// Without its sign; of the least number, which has no counterpart, the greatest.
constexpr std::int64_t magnitude(std::int64_t a) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return a >= 0 ? a : (a < -most ? most : -a);
}

}  // namespace jitney
