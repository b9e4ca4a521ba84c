// Tensor maps: how TMA sees a tensor in global memory. A kernel takes one by value as a
// __grid_constant__ parameter.
#pragma once

#include <array>
#include <cstdint>

#include "jitney/tensor.hpp"

namespace jitney::runtime {

struct alignas(64) TensorMap {
    std::array<std::uint64_t, 16> opaque{};
};

enum class Swizzle : std::uint8_t { none, bytes32, bytes64, bytes128 };

struct TensorMapShape {
    int rank = 2;  // 2 to 5
    DType dtype = DType::bf16;
    // Innermost dimension first, in elements.
    std::array<std::uint64_t, 5> size{};
    // Bytes between neighbours of each dimension but the innermost: stride_bytes[0] is of
    // dimension 1. Multiples of 16.
    std::array<std::uint64_t, 4> stride_bytes{};
    // What one copy brings; at most 256 elements a dimension.
    std::array<std::uint32_t, 5> box{};
    Swizzle swizzle = Swizzle::none;
    bool promote_to_l2_256 = true;  // fetch 256-byte sectors into L2, for data that is read again
};

// Elements outside the tensor read as zero. The base is aligned to 16 bytes. Throws Error
// (invalid_argument) that says what TMA can't do.
TensorMap make_tensor_map(const void* base, const TensorMapShape& shape);

// Whether the first 8 bytes of a map are the tensor's address and the rest does not depend on it,
// so that whoever has a map of one tensor has that of another of its shape. The format is the
// driver's own: two maps are made and compared, once a process.
bool addresses_lead_maps();

}  // namespace jitney::runtime
