// What the tests' masks keep: coin tosses, with rows that see nothing, and, in half of the masks,
// runs of keys that whole bands of rows drop, so that there are tiles to pass over, and in half of
// them keys that all rows drop.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/random.hpp"

namespace jitney::tests {

class MaskPattern {
  public:
    MaskPattern(Random& random, std::int64_t keys);

    // The elements in row-major order, one a call.
    double operator()(std::int64_t index);

  private:
    void hide_runs();

    Random& random_;
    std::int64_t keys_;
    bool has_runs_;
    bool hidden_row_ = false;
    std::vector<bool> hidden_keys_;   // of the band
    std::vector<bool> dropped_keys_;  // of all rows
};

}  // namespace jitney::tests
