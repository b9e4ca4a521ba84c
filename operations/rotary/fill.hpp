// The kernel's parameters of a rotary call.
#pragma once

#include "jitney/rotary.hpp"
#include "kernel_sources/rotary/params.h"
#include "operations/rotary/choose.hpp"

namespace jitney {

// All that the form of the call decides: no addresses.
RotaryParams form_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                         const policy::RotaryChoice& choice) noexcept;
// The rest.
void set_addresses(RotaryParams& params, const RotaryArgs& args) noexcept;

}  // namespace jitney
