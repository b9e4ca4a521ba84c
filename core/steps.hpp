// What the strides of a tensor mean. A stride counts only where its dimension has a second element;
// elsewhere a caller may leave any number in it, which no arithmetic may touch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "jitney/tensor.hpp"

namespace jitney {

inline bool is_empty(const Tensor& tensor) noexcept {
    for (int i = 0; i < tensor.ndim; ++i) {
        if (tensor.shape[static_cast<std::size_t>(i)] == 0) return true;
    }
    return false;  // a tensor without dimensions has one element
}

// How many elements lie between neighbours along a dimension; 0 where there are no neighbours.
inline std::int64_t step_of(const Tensor& tensor, std::size_t dim) noexcept {
    return tensor.shape[dim] > 1 && !is_empty(tensor) ? tensor.strides[dim] : 0;
}

// The tensor whose strides are its steps.
inline Tensor with_steps(Tensor tensor) noexcept {
    const int dims = std::clamp(tensor.ndim, 0, Tensor::max_dims);
    const Tensor given = tensor;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i)
        tensor.strides[i] = step_of(given, i);
    return tensor;
}

}  // namespace jitney
