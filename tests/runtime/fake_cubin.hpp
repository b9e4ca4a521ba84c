// What the fake compiler makes and the fake driver loads in place of machine code.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace fake {

// As a cubin, it begins like an ELF file; then its size, the text, a 0, bytes that make it as large
// as the cubin of an attention kernel, and a sum over all of that.
inline constexpr char kSealMark[] =
    "\x7f"
    "ELF fake cubin of ";
inline constexpr std::size_t kCubinBytes = 180'003;  // no multiple of anything

inline std::uint64_t sum_of(const char* bytes, std::size_t count) {
    std::uint64_t sum = 0xCBF29CE484222325U;  // FNV-1a
    for (std::size_t i = 0; i < count; ++i)
        sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3U;
    return sum;
}

inline std::string sealed_cubin(const std::string& text) {
    const std::size_t bytes = kCubinBytes + text.size();
    char size[16];
    std::snprintf(size, sizeof size, "%010zu\n", bytes);
    std::string cubin = kSealMark + std::string(size) + text + '\0';
    while (cubin.size() + sizeof(std::uint64_t) < bytes)
        cubin += static_cast<char>(cubin.size() * 151 >> 3);
    const std::uint64_t sum = sum_of(cubin.data(), cubin.size());
    cubin.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    return cubin;
}

// Whether an image that claims to be such a one is whole; images without the mark are of a test
// that wrote them itself.
inline bool is_intact(const char* image) {
    const std::size_t mark = sizeof kSealMark - 1;
    if (std::strncmp(image, kSealMark, mark) != 0) return true;
    std::size_t bytes = 0;
    if (std::sscanf(image + mark, "%10zu", &bytes) != 1) return false;
    std::uint64_t sum = 0;
    std::memcpy(&sum, image + bytes - sizeof sum, sizeof sum);
    return sum == sum_of(image, bytes - sizeof sum);
}

}  // namespace fake
