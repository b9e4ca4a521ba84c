// Calls that between them have every field of their list, to be varied field by field.
#pragma once

#include <deque>
#include <string>

#include "operations/all_fields.hpp"
#include "tests/api/call_arena.hpp"

namespace jitney::tests {

template <class Args>
struct VariedCall {
    std::string name;
    CallArena arena;
    Args args;
};

template <class Args>
std::deque<VariedCall<Args>> varied_calls();

// Adds the call that `make` places in an arena of its own.
template <class Args>
void add_call(std::deque<VariedCall<Args>>& calls, const char* name, Args (*make)(CallArena&)) {
    calls.push_back({name, CallArena(calls.size()), {}});
    VariedCall<Args>& call = calls.back();
    call.args = make(call.arena);
    call.arena.keep();
}

template <>
std::deque<VariedCall<AttentionArgs>> varied_calls();
template <>
std::deque<VariedCall<RotaryArgs>> varied_calls();
template <>
std::deque<VariedCall<AppendKvArgs>> varied_calls();
template <>
std::deque<VariedCall<MergeStatesArgs>> varied_calls();
template <>
std::deque<VariedCall<RmsNormArgs>> varied_calls();
template <>
std::deque<VariedCall<GatedActivationArgs>> varied_calls();
template <>
std::deque<VariedCall<Fp8QuantizeArgs>> varied_calls();
template <>
std::deque<VariedCall<Fp8GemmArgs>> varied_calls();
template <>
std::deque<VariedCall<Fp8LinearArgs>> varied_calls();
template <>
std::deque<VariedCall<Fp8LinearBackwardArgs>> varied_calls();
template <>
std::deque<VariedCall<Fp8LinearInferenceArgs>> varied_calls();

}  // namespace jitney::tests
