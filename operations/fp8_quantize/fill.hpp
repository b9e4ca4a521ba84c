// The kernel's parameters of fp8_quantize.
#pragma once

#include "kernel_sources/fp8/quantize_params.h"
#include "operations/check.hpp"
#include "operations/fp8_quantize/choose.hpp"

namespace jitney {

// Of a launch with these numbers, any of which may be null.
struct Fp8Numbers {
    const float* multiplier = nullptr;
    float* new_multiplier = nullptr;
    float* scale = nullptr;
    float* amax = nullptr;
    float* state = nullptr;
};

Fp8QuantizeParams make_params(const checks::Fp8QuantizeCall& call,
                              const policy::Fp8QuantizeChoice& choice, const Fp8Numbers& numbers,
                              void* counters) noexcept;

}  // namespace jitney
