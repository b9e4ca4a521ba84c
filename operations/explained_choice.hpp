// What explanations are made of: the GPU that is asked about, and what the policy says.
#pragma once

#include <string_view>
#include <vector>

#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"
#include "operations/operation.hpp"
#include "operations/own_workspace.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"

namespace jitney {

// Of a common GPU of that arch; where it is empty, of the GPU that the tensors name.
policy::DeviceFacts facts_to_explain(std::string_view arch, const Device& device);

std::vector<ExplainedCandidate> explained(const std::vector<policy::Candidate>& candidates);

// The launches of the call.
void add_steps(Explanation& explanation, const Steps& steps);
void add_steps(ExplainedLaunches& explanation, const Steps& steps);

// That the reference backend takes their place.
void tell_reference(Explanation& explanation);
void tell_reference(ExplainedLaunches& explanation);

}  // namespace jitney
