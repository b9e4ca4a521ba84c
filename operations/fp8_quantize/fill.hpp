// The kernel's parameters of fp8_quantize.
#pragma once

#include "jitney/fp8_quantize.hpp"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "operations/fp8_quantize/choose.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {

// What a launch reads and writes beside its matrices; any of them may be null.
struct Fp8Numbers {
    const float* multiplier = nullptr;
    float* new_multiplier = nullptr;
    float* scale = nullptr;
    float* amax = nullptr;
    float* state = nullptr;
};

// All that the form of a checked call decides: no addresses.
Fp8QuantizeParams form_params(const Fp8QuantizeArgs& args, const policy::Fp8QuantizeChoice& choice);
// The rest.
void set_addresses(Fp8QuantizeParams& params, const Fp8QuantizeArgs& args,
                   const Fp8Numbers& numbers, void* counters) noexcept;

// Of all launches of a cast.
struct Fp8CastParams {
    Fp8ScalesParams scales{};
    Fp8QuantizeParams amax{};
    Fp8QuantizeParams codes{};
};
Fp8CastParams form_params(const Fp8QuantizeArgs& args, const policy::Fp8CastChoice& choice);
// `state`: the row that delayed scaling goes by, whose multiplier the call's is, or null.
void set_addresses(Fp8CastParams& params, const Fp8QuantizeArgs& args,
                   const policy::Fp8CastChoice& choice, const Scratch& scratch,
                   float* state = nullptr) noexcept;

}  // namespace jitney
