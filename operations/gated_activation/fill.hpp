// The kernel's parameters of a call of gated_activation.
#pragma once

#include "jitney/gated_activation.hpp"
#include "kernel_sources/norm/gated_activation.h"
#include "operations/gated_activation/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
GatedActivationParams form_params(const GatedActivationArgs& args,
                                  const policy::GatedActivationProblem& problem,
                                  const policy::GatedActivationChoice& choice) noexcept;
// The rest.
void set_addresses(GatedActivationParams& params, const GatedActivationArgs& args) noexcept;

}  // namespace jitney
