// The lines of covered.txt, as the tests go through them.
#pragma once

#include <vector>

#include "tests/emulator/kernels/covered.hpp"

namespace jitney::emulator {

// Those of one kernel, without those that have a logits function of a caller's.
std::vector<Covered> covered_lines(policy::KernelId kernel);
// Those that have one, of all kernels.
std::vector<Covered> logits_lines();

// Random problems a line: as many, or, under AddressSanitizer, a quarter.
int problems_a_line(int problems);

}  // namespace jitney::emulator
