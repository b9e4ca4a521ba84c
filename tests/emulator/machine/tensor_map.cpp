#include "tests/emulator/machine/tensor_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace jitney::emulator {
namespace {

constexpr std::uint32_t kMark = 0x7e5a0b0c;

// The bits of a map.
struct alignas(TensorMapBits) MapAndRest {
    TensorMap map;
};
static_assert(sizeof(MapAndRest) == sizeof(TensorMapBits));

}  // namespace

TensorMapBits tensor_map_bits(const void* base, const runtime::TensorMapShape& shape) {
    TensorMap map;
    map.address = reinterpret_cast<std::uintptr_t>(base);
    map.rank = static_cast<std::uint8_t>(shape.rank);
    map.element_bytes = static_cast<std::uint8_t>(size_of(shape.dtype));
    map.swizzle_bytes = static_cast<std::uint8_t>(
        shape.swizzle == runtime::Swizzle::none ? 0 : 16u << static_cast<int>(shape.swizzle));
    for (std::size_t i = 0; i < map.rank; ++i) {
        map.size[i] = shape.size[i];
        map.box[i] = static_cast<std::uint16_t>(shape.box[i]);
        if (i != 0) map.stride_bytes[i - 1] = shape.stride_bytes[i - 1];
    }
    map.mark = kMark;
    return std::bit_cast<TensorMapBits>(MapAndRest{map});
}

std::string read_tensor_map(const TensorMapBits& bits, unsigned rank, TensorMap& map) {
    if (reinterpret_cast<std::uintptr_t>(&bits) % alignof(TensorMapBits) != 0) {
        return "a tensor map lies at an address that is no multiple of 64";
    }
    map = std::bit_cast<MapAndRest>(bits).map;
    if (map.mark != kMark) return "what is taken for a tensor map is none";
    if (rank != 0 && map.rank != rank) {
        return fmt::format("a tensor map of {} dimensions is used with {} coordinates", map.rank,
                           rank);
    }
    if (map.swizzle_bytes != 0 && map.row_bytes() != map.swizzle_bytes) {
        return fmt::format(
            "rows of a box have {} bytes, and its swizzle spans {}: this machine knows rows that "
            "fill it",
            map.row_bytes(), map.swizzle_bytes);
    }
    return {};
}

BoxRow row_of_box(const TensorMap& map, const std::array<int, 5>& corner, unsigned row) {
    std::uint64_t address = map.address;
    for (std::size_t i = 1; i < map.rank; ++i) {
        const std::int64_t at = std::int64_t{corner[i]} + row % map.box[i];
        row /= map.box[i];
        if (at < 0 || at >= static_cast<std::int64_t>(map.size[i])) return {};
        address += static_cast<std::uint64_t>(at) * map.stride_bytes[i - 1];
    }
    const std::int64_t begin = std::max<std::int64_t>(corner[0], 0);
    const std::int64_t end = std::min<std::int64_t>(std::int64_t{corner[0]} + map.box[0],
                                                    static_cast<std::int64_t>(map.size[0]));
    if (begin >= end) return {};
    address += static_cast<std::uint64_t>(begin) * map.element_bytes;
    return {reinterpret_cast<const std::byte*>(address),
            static_cast<unsigned>(begin - corner[0]) * map.element_bytes,
            static_cast<unsigned>(end - begin) * map.element_bytes};
}

}  // namespace jitney::emulator
