// A tensor map as this machine has it: in the place of the driver's bits, which nobody reads but a
// GPU. As those do, it begins with the tensor's address, on which the rest does not depend.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernel_sources/common/tensor_map.h"
#include "runtime/tensor_map.hpp"

namespace jitney::emulator {

struct TensorMap {
    std::uint64_t address = 0;
    std::array<std::uint64_t, 5> size{};
    std::array<std::uint64_t, 4> stride_bytes{};
    std::array<std::uint16_t, 5> box{};
    std::uint8_t rank = 0;
    std::uint8_t element_bytes = 0;
    std::uint8_t swizzle_bytes = 0;  // 0, 32, 64 or 128
    std::uint32_t mark = 0;          // of a map that was made

    unsigned row_bytes() const { return unsigned{box[0]} * element_bytes; }
    unsigned rows() const {
        unsigned rows = 1;
        for (std::size_t i = 1; i < rank; ++i)
            rows *= box[i];
        return rows;
    }
    unsigned box_bytes() const { return rows() * row_bytes(); }
};

TensorMapBits tensor_map_bits(const void* base, const runtime::TensorMapShape& shape);
// Why these bits are no map of so many dimensions (0: of any number), if so; else the map.
std::string read_tensor_map(const TensorMapBits& bits, unsigned rank, TensorMap& map);

// A row of a box: the bytes of it that lie within the tensor, and where those stand.
struct BoxRow {
    const std::byte* begin = nullptr;  // of the first of them
    unsigned first = 0;
    unsigned bytes = 0;  // 0: the whole row lies outside
};
BoxRow row_of_box(const TensorMap& map, const std::array<int, 5>& corner, unsigned row);

// Where a byte of shared memory goes whose 16 bytes are permuted within so many: an address to an
// address. The chunk's number changes by that of the row of 128 bytes.
constexpr unsigned swizzled(unsigned address, unsigned swizzle_bytes) {
    return address ^ (address >> 3 & (swizzle_bytes == 0 ? 0 : swizzle_bytes - 16));
}

}  // namespace jitney::emulator
