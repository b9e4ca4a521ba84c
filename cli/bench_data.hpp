// Values for the tensors of a benchmark.
#pragma once

#include <cstddef>
#include <vector>

#include "jitney/tensor.hpp"

namespace jitney::cli {

// `bytes` of elements of the format: numbers between -1 and 1, booleans of which most are true,
// indices of 0. The same at every call.
std::vector<std::byte> bench_values(DType dtype, std::size_t bytes);

}  // namespace jitney::cli
