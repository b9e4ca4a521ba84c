// Files made of bytes, for the tests of what reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace jitney::tests {

inline void write_bytes(const std::string& path, const std::string& bytes) {
    // A new file: to truncate one makes some file systems wait for the disk.
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// 8 bytes, least significant first.
inline std::string length_prefix(std::uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i)
        bytes += static_cast<char>(length >> (8 * i) & 0xFF);
    return bytes;
}

// A safetensors file of this header, right or wrong, and this data.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
    return length_prefix(header.size()) + header + data;
}

}  // namespace jitney::tests
