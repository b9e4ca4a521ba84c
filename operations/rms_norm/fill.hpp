// The kernel's parameters of a call of rms_norm.
#pragma once

#include "jitney/rms_norm.hpp"
#include "kernel_sources/norm/rms_norm.h"
#include "operations/rms_norm/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
RmsNormParams form_params(const RmsNormArgs& args, const policy::RmsNormProblem& problem) noexcept;
// The rest.
void set_addresses(RmsNormParams& params, const RmsNormArgs& args) noexcept;

}  // namespace jitney
