// What a linear layer on FP8 needs beside the casts and products, on the CPU.
#pragma once

#include "jitney/tensor.hpp"
#include "kernel_sources/fp8/update_params.h"

namespace jitney::reference {

// What fp8_update does, on rows in host memory.
void fp8_update(const Fp8UpdateParams& params);

// out[col] is the sum of the column of x, [rows, cols]: in fp64, rounded once. Throws
// Error(invalid_argument) where shapes disagree.
void column_sums(const Tensor& x, const Tensor& out);

}  // namespace jitney::reference
