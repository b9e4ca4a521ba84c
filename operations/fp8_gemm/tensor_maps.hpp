// How the tensor copy engine of Hopper sees the matrices of a product: the maps that fp8_gemm_wgmma
// is launched with.
#pragma once

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "operations/fp8_gemm/choose.hpp"

namespace jitney {

// Whether there are maps of the matrix, whose rows are aligned to 16 bytes. The driver is not
// asked.
bool rows_can_be_mapped(const Tensor& matrix) noexcept;
// Of [groups, rows, columns]: the rows of all, one below the other, have one map where no gap lies
// between the groups. What has two dimensions is taken as it is.
Tensor rows_of_groups(const Tensor& matrices) noexcept;
bool groups_can_be_mapped(const Tensor& matrices) noexcept;

// What the form of a call decides of the maps. Throws Error where the driver refuses.
void form_maps(Fp8GemmWgmmaParams& params, const Fp8GemmArgs& args,
               const policy::Fp8GemmChoice& choice);

// Puts the addresses in, at each launch. Asks the driver, and may throw, only where
// `addresses_lead` (runtime/tensor_map.hpp) is false.
void set_map_addresses(Fp8GemmWgmmaParams& params, const Fp8GemmArgs& args,
                       const policy::Fp8GemmChoice& choice, bool addresses_lead);

}  // namespace jitney
