// Rows of numbers in strided tensors, read as doubles and written with one rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// Elements in memory, which need not be aligned.
template <typename Storage>
Storage load_bits(const std::byte* address) {
    Storage bits;
    std::memcpy(&bits, address, sizeof bits);
    return bits;
}
template <typename Storage>
void store_bits(std::byte* address, Storage bits) {
    std::memcpy(address, &bits, sizeof bits);
}

// A row: `stride` is in elements, and may be 0 or negative.
struct Row {
    std::byte* data = nullptr;
    DType dtype = DType::fp32;
    std::int64_t stride = 1;

    std::byte* at(std::int64_t index) const { return data + index * stride * size_of(dtype); }
};

// The row of `view` that begins at an element offset and runs along dimension `dim`.
inline Row row_of(const Tensor& view, std::int64_t offset, int dim) {
    return {static_cast<std::byte*>(view.data) + offset * size_of(view.dtype), view.dtype,
            view.strides[static_cast<std::size_t>(dim)]};
}

// Reads `count` elements into target[0], target[step], target[2 * step], ...
void read_row(const Row& row, std::int64_t count, double* target, std::int64_t step = 1);

// Rounds `count` values to the row's format.
void write_row(const Row& row, std::int64_t count, const double* source);

// [batch, length, heads, head_dim], wherever the strides put them.
struct Blhd {
    Tensor tensor;

    Row row(std::int64_t batch, std::int64_t position, std::int64_t head) const {
        const auto& strides = tensor.strides;
        return row_of(tensor, batch * strides[0] + position * strides[1] + head * strides[2], 3);
    }
};

}  // namespace jitney::reference
