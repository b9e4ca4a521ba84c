// From the arguments of fp8_gemm to the kernel's parameters.
#pragma once

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "operations/fp8_gemm/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
Fp8GemmParams form_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice) noexcept;
// The rest.
void set_addresses(Fp8GemmParams& params, const Fp8GemmArgs& args,
                   const policy::Fp8GemmChoice& choice, void* partials, void* counters) noexcept;

}  // namespace jitney
