// Tensor maps as parameters of kernels hold them.
#pragma once

#include "kernel_sources/common/tensor_map.h"
#include "runtime/tensor_map.hpp"

namespace jitney {

// The distance between neighbours where a dimension has one element, and what distances are below.
inline constexpr std::uint64_t kNoStride = 16;
inline constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;

// Maps are made with some address where those of the tensors are not known yet.
inline const void* some_address() noexcept {
    return reinterpret_cast<const void*>(std::uintptr_t{256});
}

// Asks the driver, and throws Error where it refuses.
void encode(TensorMapBits& bits, const void* address, const runtime::TensorMapShape& shape);

// Where addresses lead maps (runtime/tensor_map.hpp).
inline void put_address(TensorMapBits& bits, const void* address) noexcept {
    bits.bits[0] = reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace jitney
