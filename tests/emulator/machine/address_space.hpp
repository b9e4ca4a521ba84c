// The addresses of the GPU's memory, and whose each page is. They lie in two parts: a dense one,
// and behind it a vast one for buffers of which few bytes exist.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/emulator/machine/pages.hpp"

namespace jitney::emulator {

class Buffer;

constexpr std::size_t kDenseBytes = std::size_t{16} << 30;
// What an offset that lost its upper bits points at is nobody's: so much lies before the first vast
// buffer, and so much between two.
constexpr std::size_t kVastFirstBytes = std::size_t{8} << 40;
constexpr std::size_t kVastGapBytes = std::size_t{32} << 30;
constexpr std::size_t kVastBytes = std::size_t{24} << 40;
constexpr std::size_t kDeviceMemoryBytes = kDenseBytes + kVastBytes;

// Whether the address lies in the range that buffers come from; cheap.
extern std::uintptr_t device_memory_begin;
inline bool in_device_memory(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) - device_memory_begin < kDeviceMemoryBytes;
}

// Closed pages for a buffer, and one more behind them, which counts as the buffer's, so that a
// report can name it. The page before the first closes the buffer before it.
std::byte* take_pages(std::size_t bytes, bool vast);
void give_pages_back(std::byte* begin, std::size_t bytes);

void set_owner(std::byte* begin, std::size_t bytes, const Buffer* owner);
// Null where the page is nobody's.
const Buffer* owner_of(const void* address);

}  // namespace jitney::emulator
