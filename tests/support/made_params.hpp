// The parameters of a launch, addresses and all, where no path of calls puts them in.
#pragma once

#include "operations/append_kv/fill.hpp"
#include "operations/attention/fill.hpp"
#include "operations/fp8_gemm/fill.hpp"
#include "operations/fp8_quantize/fill.hpp"
#include "operations/merge_states/fill.hpp"
#include "operations/rotary/fill.hpp"

namespace jitney {

inline RotaryParams make_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                                const policy::RotaryChoice& choice) noexcept {
    RotaryParams params = form_params(args, problem, choice);
    set_addresses(params, args);
    return params;
}

inline AppendKvParams make_params(const AppendKvArgs& args, const policy::AppendKvProblem& problem,
                                  const policy::AppendKvChoice& choice) noexcept {
    AppendKvParams params = form_params(args, problem, choice);
    set_addresses(params, args);
    return params;
}

inline MergeStatesParams make_params(const MergeStatesArgs& args,
                                     const policy::MergeStatesProblem& problem) noexcept {
    MergeStatesParams params = form_params(args, problem);
    set_addresses(params, args);
    return params;
}

inline AttentionParams make_params(const AttentionArgs& args,
                                   const policy::AttentionProblem& problem,
                                   const policy::AttentionChoice& choice, void* scratch,
                                   void* counters) noexcept {
    AttentionParams params = form_params(args, problem, choice);
    set_addresses(params, args, choice, scratch, counters);
    return params;
}

inline WorkMapParams make_map_params(const AttentionParams& attention,
                                     const policy::AttentionChoice& choice) noexcept {
    WorkMapParams params = form_map_params(attention, choice);
    set_addresses(params, attention);
    return params;
}

inline Fp8QuantizeParams make_params(const Fp8QuantizeArgs& args,
                                     const policy::Fp8QuantizeChoice& choice,
                                     const Fp8Numbers& numbers, void* counters) {
    Fp8QuantizeParams params = form_params(args, choice);
    set_addresses(params, args, numbers, counters);
    return params;
}

inline Fp8GemmParams make_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                                 const policy::Fp8GemmChoice& choice, void* partials,
                                 void* counters) noexcept {
    Fp8GemmParams params = form_params(args, problem, choice);
    set_addresses(params, args, choice, partials, counters);
    return params;
}

}  // namespace jitney
