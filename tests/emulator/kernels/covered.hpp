// One line of covered.txt: a specialization that the tests run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "operations/attention/choose.hpp"

namespace jitney::emulator {

// An attention problem as far as the line fixes it.
struct AttentionLine {
    policy::KernelId kernel;
    policy::AttentionProblem problem;  // batch, heads and lengths are those of an example
    policy::DeviceFacts facts;
    std::string logits;  // a function of tests/support/logits_functions.hpp; empty: none

    // Requests of one length in dense tensors, without options.
    bool is_plain() const {
        const policy::AttentionProblem& p = problem;
        return !p.packed && !p.paged && !p.window && !p.softcap && !p.alibi && !p.sinks &&
               !p.append && logits.empty();
    }
};

struct Covered {
    policy::Spec spec;
    std::optional<AttentionLine> attention;
};

// Throws Error where the line means nothing, or the policy refuses the problem.
Covered parse_covered(std::string_view line);

}  // namespace jitney::emulator
