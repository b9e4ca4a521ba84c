// What a choice of the policy adds to an explanation.
#pragma once

#include "jitney/explain.hpp"
#include "policy/attention.hpp"

namespace jitney {

void add_choice(Explanation& explanation, const policy::AttentionProblem& problem,
                const policy::AttentionChoice& choice);

}  // namespace jitney
