// The lines of covered.txt, as the tests go through them.
#pragma once

#include <vector>

#include "tests/emulator/kernels/covered.hpp"

namespace jitney::emulator {

// Those of one kernel.
std::vector<Covered> covered_lines(policy::KernelId kernel);

// Random problems a line: as many, or, under AddressSanitizer, a quarter.
int problems_a_line(int problems);

}  // namespace jitney::emulator
