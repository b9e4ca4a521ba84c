// The kernels' parameters of an attention call.
#pragma once

#include "jitney/attention.hpp"
#include "kernel_sources/attention/params.h"
#include "kernel_sources/attention/work_map.h"
#include "policy/attention.hpp"

namespace jitney {

// `scratch` and `counters` are what choice.workspace asks for; null where it asks for nothing.
AttentionParams make_params(const AttentionArgs& args, const policy::AttentionProblem& problem,
                            const policy::AttentionChoice& choice, void* scratch,
                            void* counters) noexcept;

// Those of the kernel that makes the map, which `attention` will read.
WorkMapParams make_map_params(const AttentionParams& attention,
                              const policy::AttentionChoice& choice) noexcept;

}  // namespace jitney
