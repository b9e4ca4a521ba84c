// The kernels' parameters of an attention call.
#pragma once

#include "jitney/attention.hpp"
#include "kernel_sources/attention/params.h"
#include "policy/attention.hpp"
#include "runtime/workspace.hpp"

namespace jitney {

AttentionParams make_params(const AttentionArgs& args, const policy::AttentionProblem& problem,
                            const policy::AttentionChoice& choice,
                            const runtime::Workspace& workspace) noexcept;

}  // namespace jitney
