#include "tests/emulator/machine/memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "tests/emulator/machine/pages.hpp"
#include "tests/emulator/machine/sanitizer.hpp"

namespace jitney::emulator {

std::uintptr_t device_memory_begin = ~std::uintptr_t{0} - kDeviceMemoryBytes;

namespace {

constexpr std::size_t kAlignment = 16;
constexpr std::size_t kPages = kDeviceMemoryBytes / kPageBytes;

// Which pages are whose. A buffer owns its pages and the closed one behind them; the page before
// its first closes the buffer before it (or is the range's first, which nobody gets).
class DeviceMemory {
  public:
    DeviceMemory() : base_(map_pages(kDeviceMemoryBytes)), owners_(kPages, nullptr) {
        device_memory_begin = reinterpret_cast<std::uintptr_t>(base_);
        free_.emplace(1, kPages - 1);
    }

    std::byte* take(std::size_t bytes) {
        const std::size_t pages = bytes / kPageBytes + 1;
        const std::lock_guard lock(mutex_);
        for (auto place = free_.begin(); place != free_.end(); ++place) {
            const auto [first, count] = *place;
            if (count < pages) continue;
            free_.erase(place);
            if (count > pages) free_.emplace(first + pages, count - pages);
            return base_ + first * kPageBytes;
        }
        throw std::bad_alloc();
    }

    void give_back(std::byte* begin, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        std::size_t first = page_of(begin);
        std::size_t count = bytes / kPageBytes + 1;
        auto next = free_.lower_bound(first);
        if (next != free_.end() && next->first == first + count) {
            count += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            const auto before = std::prev(next);
            if (before->first + before->second == first) {
                first = before->first;
                count += before->second;
                free_.erase(before);
            }
        }
        free_.emplace(first, count);
    }

    // The page behind counts as the buffer's, so that a report can name it.
    void own(std::byte* begin, std::size_t bytes, const Buffer* owner) {
        for (std::size_t page = 0; page <= bytes / kPageBytes; ++page)
            owners_[page_of(begin) + page] = owner;
    }

    const Buffer* owner(const std::byte* address) const { return owners_[page_of(address)]; }
    const std::byte* base() const { return base_; }

  private:
    std::size_t page_of(const std::byte* address) const {
        return static_cast<std::size_t>(address - base_) / kPageBytes;
    }

    std::mutex mutex_;
    std::byte* base_;
    std::vector<const Buffer*> owners_;
    std::map<std::size_t, std::size_t> free_;  // first page -> pages
};

DeviceMemory& device_memory() {
    static auto* const memory = new DeviceMemory;  // outlives every buffer
    return *memory;
}

std::size_t padded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// At least one page, so that an empty buffer has an address to be wrong about.
std::size_t mapped_bytes(std::size_t bytes) {
    return whole_pages(padded(bytes) == 0 ? 1 : padded(bytes));
}

std::byte* first_page(std::byte* begin, std::size_t bytes) {
    return begin + padded(bytes) - mapped_bytes(bytes);
}

}  // namespace

Buffer::Buffer(std::size_t bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    std::byte* pages = device_memory().take(mapped_bytes(bytes));
    open_pages(pages, mapped_bytes(bytes));
    std::memset(pages, 0xff, mapped_bytes(bytes));
    begin_ = pages + mapped_bytes(bytes) - padded(bytes);
    device_memory().own(pages, mapped_bytes(bytes), this);
    sanitizer::forbid(pages, mapped_bytes(bytes));
    sanitizer::allow(begin_, bytes_);
}

Buffer::~Buffer() {
    release();
}

Buffer::Buffer(Buffer&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      bytes_(other.bytes_),
      name_(std::move(other.name_)),
      read_only_(other.read_only_),
      forbidden_(std::move(other.forbidden_)) {
    if (begin_ != nullptr) {
        device_memory().own(first_page(begin_, bytes_), mapped_bytes(bytes_), this);
    }
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    release();
    begin_ = std::exchange(other.begin_, nullptr);
    bytes_ = other.bytes_;
    name_ = std::move(other.name_);
    read_only_ = other.read_only_;
    forbidden_ = std::move(other.forbidden_);
    if (begin_ != nullptr) {
        device_memory().own(first_page(begin_, bytes_), mapped_bytes(bytes_), this);
    }
    return *this;
}

void Buffer::release() {
    if (begin_ == nullptr) return;
    std::byte* pages = first_page(begin_, bytes_);
    sanitizer::allow(pages, mapped_bytes(bytes_));
    close_pages(pages, mapped_bytes(bytes_));
    device_memory().own(pages, mapped_bytes(bytes_), nullptr);
    device_memory().give_back(pages, mapped_bytes(bytes_));
    begin_ = nullptr;
}

void Buffer::make_read_only() {
    read_only_ = true;
    write_protect(first_page(begin_, bytes_), mapped_bytes(bytes_));
}

void Buffer::forbid(std::size_t offset, std::size_t bytes) {
    if (forbidden_.empty()) forbidden_.resize(bytes_);
    for (std::size_t i = 0; i < bytes; ++i)
        forbidden_[offset + i] = true;
    sanitizer::forbid(begin_ + offset, bytes);
}

void Buffer::allow_all() {
    forbidden_.clear();
    sanitizer::allow(begin_, bytes_);
}

void Buffer::copy_out(std::size_t offset, std::span<std::byte> to) const {
    sanitizer::allow(begin_, bytes_);
    std::memcpy(to.data(), begin_ + offset, to.size());
    for (std::size_t i = 0; i < forbidden_.size(); ++i) {
        const std::size_t first = i;
        while (i < forbidden_.size() && forbidden_[i])
            ++i;
        if (i != first) sanitizer::forbid(begin_ + first, i - first);
    }
}

bool Buffer::forbids(std::size_t offset, std::size_t bytes) const {
    if (forbidden_.empty()) return false;
    for (std::size_t i = 0; i < bytes; ++i) {
        if (forbidden_[offset + i]) return true;
    }
    return false;
}

std::string objection(const void* begin, std::size_t bytes, bool write) {
    if (bytes == 0 || !in_device_memory(begin)) return {};
    const auto* address = static_cast<const std::byte*>(begin);
    const Buffer* buffer = device_memory().owner(address);
    const char* does = write ? "writes" : "reads";
    if (buffer == nullptr) return fmt::format("{} {} bytes outside of every buffer", does, bytes);
    const std::ptrdiff_t offset = address - buffer->data();
    if (offset < 0 || offset + static_cast<std::ptrdiff_t>(bytes) >
                          static_cast<std::ptrdiff_t>(buffer->bytes())) {
        return fmt::format("{} {} bytes at offset {} of {}, which has {} bytes", does, bytes,
                           offset, buffer->name(), buffer->bytes());
    }
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

}  // namespace jitney::emulator
