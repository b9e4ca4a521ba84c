// A problem of requests, pages and options, run by the kernels on the CPU and held against the
// reference.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "jitney/attention.hpp"
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

struct ServingCall {
    int sm_count = 0;
    bool batch_invariant = false;
    std::optional<std::int64_t> max_kv_len = {};
    std::function<void(AttentionArgs&)> change = {};  // of the call, before it is made
    bool compare = true;                              // with the reference
};

struct ServingRun {
    policy::AttentionChoice choice;
    tests::HostTensor out;
    tests::HostTensor lse;
};

// The same with a problem that is there, whose out and lse become those of the reference.
std::optional<ServingRun> run_serving(const Covered& covered, tests::ServingProblem& problem,
                                      const ServingCall& call, tests::Random& random);

// The forms of keys that a line's kernel takes.
std::vector<tests::KeyForm> key_forms(const Covered& covered);

// Gives a shape what the line fixes.
void fix(tests::ServingShape& shape, const Covered& covered, tests::Random& random);

}  // namespace jitney::emulator
