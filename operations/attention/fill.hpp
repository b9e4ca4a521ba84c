// The kernels' parameters of an attention call.
#pragma once

#include "jitney/attention.hpp"
#include "kernel_sources/attention/params.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "kernel_sources/attention/work_map.h"
#include "operations/attention/choose.hpp"

namespace jitney {

// All that the form of the call decides: no addresses.
AttentionParams form_params(const AttentionArgs& args, const policy::AttentionProblem& problem,
                            const policy::AttentionChoice& choice) noexcept;

// The rest. `scratch` and `counters` are what choice.workspace asks for; null where it asks for
// nothing.
void set_addresses(AttentionParams& params, const AttentionArgs& args,
                   const policy::AttentionChoice& choice, void* scratch, void* counters) noexcept;

// The same for attn_prefill_wgmma, whose `attention` is there. Asks the driver for tensor maps, and
// throws Error where it refuses.
void form_wgmma_params(PrefillWgmmaParams& params, const AttentionArgs& args,
                       const policy::AttentionProblem& problem,
                       const policy::AttentionChoice& choice);
void set_wgmma_addresses(PrefillWgmmaParams& params, const AttentionArgs& args,
                         const policy::AttentionChoice& choice, bool addresses_lead,
                         void* counters);

// The same for the kernel that makes the map, which `attention` will read.
WorkMapParams form_map_params(const AttentionParams& attention,
                              const policy::AttentionChoice& choice) noexcept;
void set_addresses(WorkMapParams& params, const AttentionParams& attention) noexcept;

}  // namespace jitney
