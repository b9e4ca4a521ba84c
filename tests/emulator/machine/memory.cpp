#include "tests/emulator/machine/memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tests/emulator/machine/sanitizer.hpp"

namespace jitney::emulator {

namespace {

constexpr std::size_t kAlignment = 16;

std::size_t padded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Intervals all_of(std::size_t bytes) {
    Intervals whole;
    whole.add(0, bytes);
    return whole;
}

}  // namespace

// At least one page, so that an empty buffer has an address to be wrong about.
std::size_t Buffer::mapped_bytes() const {
    return whole_pages(padded(bytes_) == 0 ? 1 : padded(bytes_));
}

std::byte* Buffer::first_page() const {
    return begin_ + padded(bytes_) - mapped_bytes();
}

template <class Body>
void Buffer::for_open_pages(const Body& body) const {
    for (const Intervals::Run& run : open_pages_.runs())
        body(first_page() + run.first, run.end - run.first);
}

Buffer::Buffer(std::size_t bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    std::byte* const pages = take_pages(mapped_bytes(), false);
    begin_ = pages + mapped_bytes() - padded(bytes_);
    open_pages_ = all_of(mapped_bytes());
    set_owner(pages, mapped_bytes(), this);
    open_pages(pages, mapped_bytes());
    std::memset(pages, 0xff, mapped_bytes());
    sanitizer::forbid(pages, mapped_bytes());
    sanitizer::allow(begin_, bytes_);
}

Buffer::Buffer(std::size_t bytes, const Intervals& existing, std::string name)
    : bytes_(bytes), name_(std::move(name)), forbidden_(existing.gaps(bytes)) {
    std::byte* const pages = take_pages(mapped_bytes(), true);
    begin_ = pages + mapped_bytes() - padded(bytes_);
    set_owner(pages, mapped_bytes(), this);
    const std::size_t before = mapped_bytes() - padded(bytes_);
    for (const Intervals::Run& run : existing.runs()) {
        open_pages_.add((before + run.first) / kPageBytes * kPageBytes,
                        whole_pages(before + run.end));
    }
    for_open_pages([](std::byte* begin, std::size_t count) {
        open_pages(begin, count);
        std::memset(begin, 0xff, count);
        sanitizer::forbid(begin, count);
    });
    for (const Intervals::Run& run : existing.runs())
        sanitizer::allow(begin_ + run.first, run.end - run.first);
}

Buffer::~Buffer() {
    release();
}

Buffer::Buffer(Buffer&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      bytes_(other.bytes_),
      name_(std::move(other.name_)),
      read_only_(other.read_only_),
      forbidden_(std::move(other.forbidden_)),
      open_pages_(std::move(other.open_pages_)) {
    if (begin_ != nullptr) set_owner(first_page(), mapped_bytes(), this);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    release();
    begin_ = std::exchange(other.begin_, nullptr);
    bytes_ = other.bytes_;
    name_ = std::move(other.name_);
    read_only_ = other.read_only_;
    forbidden_ = std::move(other.forbidden_);
    open_pages_ = std::move(other.open_pages_);
    if (begin_ != nullptr) set_owner(first_page(), mapped_bytes(), this);
    return *this;
}

void Buffer::release() {
    if (begin_ == nullptr) return;
    for_open_pages([](std::byte* begin, std::size_t count) {
        sanitizer::allow(begin, count);
        close_pages(begin, count);
    });
    set_owner(first_page(), mapped_bytes(), nullptr);
    give_pages_back(first_page(), mapped_bytes());
    begin_ = nullptr;
}

void Buffer::make_read_only() {
    read_only_ = true;
    for_open_pages(&write_protect);
}

void Buffer::forbid(std::size_t offset, std::size_t bytes) {
    forbidden_.add(offset, offset + bytes);
    sanitizer::forbid(begin_ + offset, bytes);
}

void Buffer::allow_all() {
    forbidden_.clear();
    sanitizer::allow(begin_, bytes_);
}

void Buffer::copy_out(std::size_t offset, std::span<std::byte> to) const {
    const std::size_t end = offset + to.size();
    sanitizer::allow(begin_ + offset, to.size());
    std::memcpy(to.data(), begin_ + offset, to.size());
    if constexpr (!sanitizer::kOn) return;
    for (const Intervals::Run& run : forbidden_.runs()) {
        const std::size_t first = std::max(run.first, offset);
        if (first < std::min(run.end, end)) {
            sanitizer::forbid(begin_ + first, std::min(run.end, end) - first);
        }
    }
}

bool Buffer::forbids(std::size_t offset, std::size_t bytes) const {
    return !forbidden_.empty() && forbidden_.touch(offset, offset + bytes);
}

void Buffer::spoil_forbidden(std::size_t offset, std::span<std::byte> copy) const {
    const std::size_t end = offset + copy.size();
    for (const Intervals::Run& run : forbidden_.runs()) {
        for (std::size_t at = std::max(run.first, offset); at < std::min(run.end, end); ++at)
            copy[at - offset] = std::byte{0xff};
    }
}

Buffer lonely(std::size_t bytes, std::string name) {
    return Buffer(bytes, all_of(bytes), std::move(name));
}

namespace {

// Why these bytes lie in no buffer; empty where they do. `buffer` receives it, and `offset` where.
std::string objection_to_place(const std::byte* address, std::size_t bytes, const char* does,
                               const Buffer*& buffer, std::ptrdiff_t& offset) {
    buffer = owner_of(address);
    if (buffer == nullptr) return fmt::format("{} {} bytes outside of every buffer", does, bytes);
    offset = address - buffer->data();
    if (offset < 0 || offset + static_cast<std::ptrdiff_t>(bytes) >
                          static_cast<std::ptrdiff_t>(buffer->bytes())) {
        return fmt::format("{} {} bytes at offset {} of {}, which has {} bytes", does, bytes,
                           offset, buffer->name(), buffer->bytes());
    }
    return {};
}

}  // namespace

std::string objection(const void* begin, std::size_t bytes, bool write) {
    if (bytes == 0 || !in_device_memory(begin)) return {};
    const char* does = write ? "writes" : "reads";
    const Buffer* buffer = nullptr;
    std::ptrdiff_t offset = 0;
    std::string wrong =
        objection_to_place(static_cast<const std::byte*>(begin), bytes, does, buffer, offset);
    if (!wrong.empty()) return wrong;
    if (write && buffer->read_only()) {
        return fmt::format("writes {} bytes at offset {} of {}, an input", bytes, offset,
                           buffer->name());
    }
    if (buffer->forbids(static_cast<std::size_t>(offset), bytes)) {
        return fmt::format("{} {} bytes at offset {} of {}, which are not its business", does,
                           bytes, offset, buffer->name());
    }
    return {};
}

std::string objection_to_bringing(const void* begin, std::size_t bytes) {
    const Buffer* buffer = nullptr;
    std::ptrdiff_t offset = 0;
    if (!in_device_memory(begin))
        return fmt::format("copies {} bytes outside of every buffer", bytes);
    return objection_to_place(static_cast<const std::byte*>(begin), bytes, "copies", buffer,
                              offset);
}

void copy_or_spoil(const std::byte* from, std::span<std::byte> to) {
    const Buffer& buffer = *owner_of(from);
    const auto offset = static_cast<std::size_t>(from - buffer.data());
    buffer.copy_out(offset, to);
    buffer.spoil_forbidden(offset, to);
}

}  // namespace jitney::emulator
