// An attention problem, run by the kernels on the CPU and held against the reference.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/emulator/kernels/covered.hpp"
#include "tests/support/problems.hpp"

namespace jitney::emulator {

struct AttentionCase {
    tests::AttentionShape shape;
    tests::AttentionLayouts layouts;
    std::int64_t shift = 0;  // elements that every tensor is shifted by
    bool rising = false;     // later keys score higher and higher: maxima rise from tile to tile
    bool far = false;        // every tensor's rows lie far apart, as EmulatedTensor::Spread says
    int sm_count = 0;        // of the GPU; 0: as the line of covered.txt says
    // What of the mask is kept, by the row-major index of its elements; empty: chance decides.
    std::function<bool(std::int64_t)> keep = {};

    std::string text() const;
};

// Makes the call as the library would: checks, policy, parameters, launch; and checks out, LSE,
// what lies around them, and that the counters of a split are zero again. Returns what the policy
// chose; nothing where that is not this line's specialization, and then nothing has run.
std::optional<policy::AttentionChoice> run_attention(const Covered& covered,
                                                     const AttentionCase& test,
                                                     tests::Random& random);

// Against what the reference made of the problem.
void check_output(const tests::HostTensor& out, const tests::HostTensor& expected);
void check_log_sums(const tests::HostTensor& lse, const tests::HostTensor& expected);

}  // namespace jitney::emulator
