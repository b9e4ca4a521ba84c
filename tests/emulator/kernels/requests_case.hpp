// A batch of requests, run by the kernels on the CPU and held against the reference. The launch's
// parameters are made here: every layout and option, whether a call of the library has it or not.
#pragma once

#include <optional>

#include "tests/emulator/kernels/covered.hpp"
#include "tests/emulator/kernels/requests.hpp"

namespace jitney::emulator {

// Returns what the policy chose; nothing where that is not this line's specialization, and then
// nothing has run.
std::optional<policy::AttentionChoice> run_requests(const Covered& covered,
                                                    const RequestsShape& shape, int sm_count,
                                                    tests::Random& random);

}  // namespace jitney::emulator
