// From the arguments of fp8_gemm to the kernel's parameters.
#pragma once

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "operations/fp8_gemm/choose.hpp"

namespace jitney {

Fp8GemmParams make_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice, void* partials,
                          void* counters) noexcept;

}  // namespace jitney
