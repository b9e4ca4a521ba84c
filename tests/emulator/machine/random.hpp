// A small fast generator (splitmix64): every choice of the machine follows from one seed.
#pragma once

#include <cstdint>

namespace jitney::emulator {

class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        return mixed ^ (mixed >> 31);
    }

    // 0 .. bound - 1
    constexpr unsigned below(unsigned bound) {
        return static_cast<unsigned>((next() >> 32) * bound >> 32);
    }

    // True once in `times`.
    constexpr bool once_in(unsigned times) { return below(times) == 0; }

  private:
    std::uint64_t state_;
};

}  // namespace jitney::emulator
