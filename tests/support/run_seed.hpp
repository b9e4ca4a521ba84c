// The seed of a run of a test program, from which all that is random in it follows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitney::tests {

// The number in JITNEY_TEST_SEED, or one that is drawn and left there, so that the processes that a
// test starts have the same.
std::uint64_t run_seed();

// "JITNEY_TEST_SEED=..." of a seed: the first line of a program's output, and what a failure tells.
std::string text_of_seed(std::uint64_t seed);

// Each test case draws numbers of its own, whichever others run before it: what its n-th generator
// begins with follows from the run's seed, the name and n.
void begin_numbers_of(std::string_view test_case);
std::uint64_t next_beginning();

}  // namespace jitney::tests
