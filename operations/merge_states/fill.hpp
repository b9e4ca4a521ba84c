// The kernel's parameters of a call of merge_states.
#pragma once

#include "jitney/merge_states.hpp"
#include "kernel_sources/attention/merge_states.h"
#include "operations/merge_states/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
MergeStatesParams form_params(const MergeStatesArgs& args,
                              const policy::MergeStatesProblem& problem) noexcept;
// The rest.
void set_addresses(MergeStatesParams& params, const MergeStatesArgs& args) noexcept;

}  // namespace jitney
