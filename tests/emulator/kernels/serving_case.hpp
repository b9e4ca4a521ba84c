// A problem of requests, pages and options, run by the kernels on the CPU and held against the
// reference.
#pragma once

#include <optional>

#include "tests/emulator/kernels/covered.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::emulator {

// Makes the call as the library would, the map of packed queries included, and checks out, LSE,
// what lies around them, rows of no request, and what was appended. `sm_count` 0: as the line of
// covered.txt says. Returns what the policy chose; nothing where that is not this line's
// specialization, or there is nothing to compute, and then nothing has run.
std::optional<policy::AttentionChoice> run_serving(const Covered& covered,
                                                   const tests::ServingShape& shape,
                                                   tests::Random& random, int sm_count = 0);

}  // namespace jitney::emulator
