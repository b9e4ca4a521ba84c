// Whether a call is one that a plan was made for.
#pragma once

#include "jitney/attention.hpp"

namespace jitney::checks {

// A closer look, where is_like() saw a difference: throws Error with what differs, and returns
// where the plan can run the call all the same. `aligned`: its kernel reads 16 bytes at a time.
void check_planned(const AttentionArgs& args, const AttentionArgs& planned, bool aligned);

}  // namespace jitney::checks
