// Integers of the formats on disk: little-endian on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitney::cache {

inline void put_u64(std::string& bytes, std::uint64_t value, int count = 8) {
    for (int i = 0; i < count; ++i)
        bytes += static_cast<char>((value >> (8 * i)) & 0xff);
}

inline void put_u32(std::string& bytes, std::uint32_t value) {
    put_u64(bytes, value, 4);
}

inline std::uint64_t get_u64(std::string_view bytes, std::size_t at, std::size_t count = 8) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    return value;
}

inline std::uint32_t get_u32(std::string_view bytes, std::size_t at) {
    return static_cast<std::uint32_t>(get_u64(bytes, at, 4));
}

}  // namespace jitney::cache
