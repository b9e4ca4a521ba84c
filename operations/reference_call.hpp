// The library's calls as the reference backend takes them.
#pragma once

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/rotary.hpp"
#include "operations/append_kv/reference.hpp"
#include "operations/attention/reference.hpp"
#include "operations/rotary/reference.hpp"

namespace jitney {

// Throws Error(unsupported) where a logits function would have to run.
reference::Attention reference_call(const AttentionArgs& args);
reference::Rotary reference_call(const RotaryArgs& args);
reference::AppendKv reference_call(const AppendKvArgs& args);

}  // namespace jitney
