// The kernel's parameters of a call of append_kv.
#pragma once

#include "jitney/append_kv.hpp"
#include "kernel_sources/attention/append_kv.h"
#include "operations/append_kv/choose.hpp"

namespace jitney {

// All that the form of a checked call decides: no addresses.
AppendKvParams form_params(const AppendKvArgs& args, const policy::AppendKvProblem& problem,
                           const policy::AppendKvChoice& choice) noexcept;
// The rest.
void set_addresses(AppendKvParams& params, const AppendKvArgs& args) noexcept;

}  // namespace jitney
