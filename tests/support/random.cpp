#include "tests/support/random.hpp"

#include <cmath>
#include <numbers>

#include "tests/support/run_seed.hpp"

namespace jitney::tests {

Random Random::fresh() {
    Random random(next_beginning());
    random.seed_ = run_seed();
    return random;
}

// SplitMix64: a counter, scrambled.
std::uint64_t Random::bits() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
    const double unit = static_cast<double>(bits() >> 11) * 0x1p-53;
    return low + unit * (high - low);
}

double Random::normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(0.0, 1.0)));
    return radius * std::cos(2.0 * std::numbers::pi * uniform(0.0, 1.0));
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
    const std::uint64_t range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(bits() % range);
}

std::string Random::text() const {
    return text_of_seed(seed_);
}

}  // namespace jitney::tests
