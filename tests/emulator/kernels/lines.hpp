// The lines of covered.txt, as the tests go through them.
#pragma once

#include <vector>

#include "tests/emulator/kernels/covered.hpp"
#include "tests/support/random.hpp"

namespace jitney::emulator {

// Those of one kernel, without those that have a logits function of a caller's.
std::vector<Covered> covered_lines(policy::KernelId kernel);
// Those that have one, of all kernels.
std::vector<Covered> logits_lines();

// The SMs of a GPU that divides the keys of a decode kernel among more or fewer blocks than the
// line's, or on which fewer blocks of attn_prefill_wgmma stay than it has tiles; 0, the line's own,
// for a kernel that does not ask.
int some_sms(const Covered& covered, tests::Random& random);

// Random problems a line: as many, or, under AddressSanitizer, a quarter.
int problems_a_line(int problems);

}  // namespace jitney::emulator
