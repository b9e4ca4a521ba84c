// Calls that between them have every field of their list, to be varied field by field.
#pragma once

#include <deque>
#include <string>

#include "jitney/attention.hpp"
#include "jitney/rotary.hpp"
#include "tests/api/call_arena.hpp"

namespace jitney::tests {

template <class Args>
struct VariedCall {
    std::string name;
    CallArena arena;
    Args args;
};

std::deque<VariedCall<AttentionArgs>> varied_attention_calls();
std::deque<VariedCall<RotaryArgs>> varied_rotary_calls();

}  // namespace jitney::tests
