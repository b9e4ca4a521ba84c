#include "tests/emulator/machine/pages.hpp"

#include <sys/mman.h>

#include <new>

namespace jitney::emulator {
namespace {

void protect(std::byte* begin, std::size_t bytes, int how) {
    if (bytes != 0 && ::mprotect(begin, bytes, how) != 0) throw std::bad_alloc();
}

}  // namespace

std::byte* map_pages(std::size_t bytes) {
    void* begin =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(begin);
}

void unmap_pages(std::byte* begin, std::size_t bytes) {
    ::munmap(begin, bytes);
}

void open_pages(std::byte* begin, std::size_t bytes) {
    protect(begin, bytes, PROT_READ | PROT_WRITE);
}

void write_protect(std::byte* begin, std::size_t bytes) {
    protect(begin, bytes, PROT_READ);
}

void close_pages(std::byte* begin, std::size_t bytes) {
    if (bytes == 0) return;
    ::madvise(begin, bytes, MADV_DONTNEED);
    protect(begin, bytes, PROT_NONE);
}

}  // namespace jitney::emulator
