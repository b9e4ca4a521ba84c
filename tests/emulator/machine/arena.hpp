// A block's shared memory: exactly as many bytes as the launch gave, between closed pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/emulator/machine/pages.hpp"

namespace jitney::emulator {

class Arena {
  public:
    // The largest dynamic shared memory of any GPU known here.
    static constexpr std::size_t max_bytes = std::size_t{227} << 10;
    // What every layout may rely on.
    static constexpr std::size_t alignment = 1024;
    // The 32-bit address of the first byte: not zero, and no more aligned than promised.
    static constexpr std::uint32_t first_address = alignment;

    Arena();
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Filled with 0xff: NaN in every floating format, -1 in every integer one.
    void begin_block(std::size_t bytes);
    // Whether what lies past the end (up to the closed page) was left alone.
    bool end_untouched() const;

    char* begin() const { return begin_; }
    std::size_t bytes() const { return bytes_; }
    bool contains(const void* address, std::size_t bytes) const {
        const std::size_t at = offset(address);
        return at <= bytes_ && bytes <= bytes_ - at;
    }
    // Whether an address is so near that it must have been meant to lie within.
    bool near(const void* address) const {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(map_) <
               mapped_bytes;
    }
    std::size_t offset(const void* address) const {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin_);
    }

    // Bytes that an asynchronous copy is about to write: undefined until it has landed.
    void set_in_flight(std::size_t offset, std::size_t bytes);
    void set_landed(std::size_t offset, std::size_t bytes);
    bool in_flight(std::size_t offset, std::size_t bytes) const {
        if (in_flight_pieces_ == 0 || bytes == 0) return false;
        for (std::size_t piece = offset / kPiece; piece <= (offset + bytes - 1) / kPiece; ++piece) {
            if (in_flight_[piece]) return true;
        }
        return false;
    }

  private:
    static constexpr std::size_t kPiece = 4;  // the smallest asynchronous copy
    static constexpr std::size_t mapped_bytes = whole_pages(max_bytes) + 2 * kPageBytes;

    std::byte* map_;
    char* begin_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t in_flight_pieces_ = 0;
    std::vector<bool> in_flight_;
};

}  // namespace jitney::emulator
