#include "tests/emulator/machine/arena.hpp"

#include <algorithm>
#include <cstring>

#include "tests/emulator/machine/sanitizer.hpp"

namespace jitney::emulator {
namespace {

constexpr unsigned char kPoison = 0xff;
constexpr char kCanary = 0x5a;

constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

}  // namespace

Arena::Arena() : map_(map_pages(mapped_bytes)), in_flight_(max_bytes / kPiece + 1) {}

Arena::~Arena() {
    sanitizer::allow(map_, mapped_bytes);
    unmap_pages(map_, mapped_bytes);
}

void Arena::begin_block(std::size_t bytes) {
    std::byte* const end = map_ + mapped_bytes - kPageBytes;
    sanitizer::allow(map_, mapped_bytes);
    if (padded(bytes) != padded(bytes_) || begin_ == nullptr) {
        close_pages(map_, mapped_bytes);
        open_pages(end - whole_pages(padded(bytes)), whole_pages(padded(bytes)));
    }
    bytes_ = bytes;
    begin_ = reinterpret_cast<char*>(end - padded(bytes));
    std::memset(begin_, kPoison, bytes);
    std::memset(begin_ + bytes, kCanary, padded(bytes) - bytes);
    std::fill(in_flight_.begin(), in_flight_.end(), false);
    in_flight_pieces_ = 0;
    sanitizer::forbid(map_, mapped_bytes);
    sanitizer::allow(begin_, bytes);
}

bool Arena::end_untouched() const {
    if (sanitizer::kOn) return true;  // it would have spoken
    return std::all_of(begin_ + bytes_, begin_ + padded(bytes_),
                       [](char byte) { return byte == kCanary; });
}

void Arena::set_in_flight(std::size_t offset, std::size_t bytes) {
    std::memset(begin_ + offset, kPoison, bytes);
    for (std::size_t piece = offset / kPiece; piece < (offset + bytes) / kPiece; ++piece) {
        in_flight_pieces_ += in_flight_[piece] ? 0u : 1u;
        in_flight_[piece] = true;
    }
    sanitizer::forbid(begin_ + offset, bytes);
}

void Arena::set_landed(std::size_t offset, std::size_t bytes) {
    sanitizer::allow(begin_ + offset, bytes);
    for (std::size_t piece = offset / kPiece; piece < (offset + bytes) / kPiece; ++piece) {
        in_flight_pieces_ -= in_flight_[piece] ? 1u : 0u;
        in_flight_[piece] = false;
    }
}

}  // namespace jitney::emulator
