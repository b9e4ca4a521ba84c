// Random numbers that a seed reproduces on every machine and compiler.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace jitney::tests {

class Random {
  public:
    explicit Random(std::uint64_t seed) : seed_(seed), state_(seed) {}
    // Of the running test: what it begins with follows from the run's seed (run_seed.hpp).
    static Random fresh();

    std::uint64_t bits();
    double uniform(double low, double high);
    double normal();
    // Between low and high, both included.
    std::int64_t integer(std::int64_t low, std::int64_t high);
    bool chance(double probability) { return uniform(0.0, 1.0) < probability; }
    template <typename T>
    const T& pick(std::span<const T> choices) {
        return choices[static_cast<std::size_t>(
            integer(0, static_cast<std::int64_t>(choices.size()) - 1))];
    }

    // "JITNEY_TEST_SEED=..." of the seed that this, or the run, began with: for the message of a
    // failure.
    std::string text() const;

  private:
    std::uint64_t seed_;
    std::uint64_t state_;
};

}  // namespace jitney::tests
