// Whole pages from the operating system, closed until they are opened: guard zones for free.
#pragma once

#include <cstddef>

namespace jitney::emulator {

constexpr std::size_t kPageBytes = 4096;

constexpr std::size_t whole_pages(std::size_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Address space that can't be read or written yet; `bytes` in whole pages. Throws bad_alloc.
std::byte* map_pages(std::size_t bytes);
void unmap_pages(std::byte* begin, std::size_t bytes);

void open_pages(std::byte* begin, std::size_t bytes);     // read and write
void write_protect(std::byte* begin, std::size_t bytes);  // read only
void close_pages(std::byte* begin, std::size_t bytes);    // neither; contents are dropped

}  // namespace jitney::emulator
