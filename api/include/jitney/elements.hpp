// Single elements of tensors in host memory, as numbers of whatever format.
#pragma once

#include <cstdint>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// `index` counts the elements in row-major order; the tensor is contiguous. Numbers are rounded to
// the nearest of the format, ties to even; those of FP8 saturate.
JITNEY_API double element_of(const Tensor& tensor, std::int64_t index);
JITNEY_API void set_element(const Tensor& tensor, std::int64_t index, double value);

}  // namespace jitney
