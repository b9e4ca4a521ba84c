// The kernel's parameters of a call of merge_states.
#pragma once

#include "jitney/merge_states.hpp"
#include "kernel_sources/attention/merge_states.h"
#include "operations/merge_states/choose.hpp"

namespace jitney {

// Of checked arguments.
MergeStatesParams make_params(const MergeStatesArgs& args,
                              const policy::MergeStatesProblem& problem) noexcept;

}  // namespace jitney
