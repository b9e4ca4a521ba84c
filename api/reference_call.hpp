// An attention call as the reference backend takes it.
#pragma once

#include "jitney/attention.hpp"
#include "reference/attention.hpp"

namespace jitney {

reference::Attention reference_call(const AttentionArgs& args);

}  // namespace jitney
