// The launches of a linear layer beside the casts and products, or what stands for them on the
// host.
#pragma once

#include "jitney/tensor.hpp"
#include "kernel_sources/fp8/update_params.h"

namespace jitney {

// All pointers are of `device`.
void fp8_update(const Fp8UpdateParams& params, const Device& device, Stream stream);

// x [rows, cols] and out [cols] are of one device, and have been checked.
void column_sums(const Tensor& x, const Tensor& out, Stream stream);

}  // namespace jitney
