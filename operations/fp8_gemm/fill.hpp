// From the arguments of fp8_gemm to the kernel's parameters.
#pragma once

#include <cstddef>

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "operations/fp8_gemm/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
Fp8GemmParams form_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice) noexcept;
// The rest.
void set_addresses(Fp8GemmParams& params, const Fp8GemmArgs& args,
                   const policy::Fp8GemmChoice& choice, void* partials, void* counters) noexcept;

// What either kernel is launched with.
struct Fp8GemmLaunchParams {
    Fp8GemmWgmmaParams wgmma{};  // its part `gemm` is what fp8_gemm_mma takes
    bool is_wgmma = false;
    bool addresses_lead = true;  // the tensor maps

    void* of(std::size_t) noexcept { return is_wgmma ? static_cast<void*>(&wgmma) : &wgmma.gemm; }
};

// The same of the kernel that was chosen. Where that is fp8_gemm_wgmma the driver is asked for
// tensor maps, and Error thrown where it refuses.
Fp8GemmLaunchParams form_launch(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                                const policy::Fp8GemmChoice& choice);
void set_addresses(Fp8GemmLaunchParams& params, const Fp8GemmArgs& args,
                   const policy::Fp8GemmChoice& choice, void* partials, void* counters);

}  // namespace jitney
