// What explanations are made of: the GPU that is asked about, and what the policy says.
#pragma once

#include <string_view>

#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"
#include "operations/attention/choose.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"

namespace jitney {

// Of a common GPU of that arch; where it is empty, of the GPU that the tensors name.
policy::DeviceFacts facts_to_explain(std::string_view arch, const Device& device);

ExplainedCandidate explained(const policy::Candidate& candidate);

void add_choice(Explanation& explanation, const policy::AttentionProblem& problem,
                const policy::AttentionChoice& choice);

}  // namespace jitney
