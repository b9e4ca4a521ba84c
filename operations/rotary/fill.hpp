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
// Both.
inline RotaryParams make_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                                const policy::RotaryChoice& choice) noexcept {
    RotaryParams params = form_params(args, problem, choice);
    set_addresses(params, args);
    return params;
}

}  // namespace jitney
