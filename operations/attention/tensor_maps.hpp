// How the tensor copy engine of Hopper sees the tensors of an attention call: the maps that
// attn_prefill_wgmma is launched with.
#pragma once

#include "jitney/attention.hpp"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "policy/spec.hpp"

namespace jitney {

// Whether there are maps of the tensor, [..., length, heads, head_dim], whose address and strides
// are multiples of 16 bytes. Nothing is allocated, and the driver is not asked.
bool can_be_mapped(const Tensor& tensor) noexcept;

// What the form of a call decides of the maps; `params.attention` has its packed group. Throws
// Error where the driver refuses.
void form_maps(PrefillWgmmaParams& params, const AttentionArgs& args, int tile_n);

// Puts the addresses in, at each launch. `zeros` are 16 bytes, for a call without keys. Asks the
// driver, and may throw, only where `addresses_lead` (runtime/tensor_map.hpp) is false.
void set_map_addresses(PrefillWgmmaParams& params, const AttentionArgs& args,
                       const policy::Spec& spec, bool addresses_lead, void* zeros);

}  // namespace jitney
