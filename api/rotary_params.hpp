// The kernel's parameters of a rotary call.
#pragma once

#include "jitney/rotary.hpp"
#include "kernel_sources/rotary/params.h"
#include "policy/rotary.hpp"

namespace jitney {

RotaryParams make_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                         const policy::RotaryChoice& choice) noexcept;

}  // namespace jitney
