#include "tests/emulator/machine/address_space.hpp"

#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace jitney::emulator {

std::uintptr_t device_memory_begin = ~std::uintptr_t{0} - kDeviceMemoryBytes;

namespace {

constexpr std::size_t kDensePages = kDenseBytes / kPageBytes;
constexpr std::size_t kFirstVastPage = kDensePages + kVastFirstBytes / kPageBytes;
constexpr std::size_t kGapPages = kVastGapBytes / kPageBytes;
constexpr std::size_t kPages = kDeviceMemoryBytes / kPageBytes;

class AddressSpace {
  public:
    AddressSpace() : base_(map_pages(kDeviceMemoryBytes)), dense_owners_(kDensePages, nullptr) {
        device_memory_begin = reinterpret_cast<std::uintptr_t>(base_);
        free_.emplace(1, kDensePages - 1);
        free_.emplace(kFirstVastPage, kPages - kFirstVastPage);
    }

    std::byte* take(std::size_t bytes, bool vast) {
        const std::size_t pages = pages_of(bytes, vast);
        const std::lock_guard lock(mutex_);
        for (auto place = vast ? free_.lower_bound(kDensePages) : free_.begin();
             place != free_.end(); ++place) {
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
        std::size_t count = pages_of(bytes, first >= kDensePages);
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

    void own(std::byte* begin, std::size_t bytes, const Buffer* owner) {
        const std::size_t first = page_of(begin);
        if (first >= kDensePages) {
            vast_owners_.erase(first);
            if (owner != nullptr) vast_owners_.emplace(first, Owned{bytes / kPageBytes + 1, owner});
            return;
        }
        for (std::size_t page = 0; page <= bytes / kPageBytes; ++page)
            dense_owners_[first + page] = owner;
    }

    const Buffer* owner(const void* address) const {
        const std::size_t page = page_of(static_cast<const std::byte*>(address));
        if (page < kDensePages) return dense_owners_[page];
        const auto behind = vast_owners_.upper_bound(page);
        if (behind == vast_owners_.begin()) return nullptr;
        const auto& [first, owned] = *std::prev(behind);
        return page < first + owned.pages ? owned.owner : nullptr;
    }

  private:
    struct Owned {
        std::size_t pages;
        const Buffer* owner;
    };

    std::size_t page_of(const std::byte* address) const {
        return static_cast<std::size_t>(address - base_) / kPageBytes;
    }
    static std::size_t pages_of(std::size_t bytes, bool vast) {
        return bytes / kPageBytes + (vast ? kGapPages : 1);
    }

    std::mutex mutex_;
    std::byte* base_;
    std::vector<const Buffer*> dense_owners_;
    std::map<std::size_t, Owned> vast_owners_;  // by their first page
    std::map<std::size_t, std::size_t> free_;   // first page -> pages
};

AddressSpace& address_space() {
    static auto* const space = new AddressSpace;  // outlives every buffer
    return *space;
}

}  // namespace

std::byte* take_pages(std::size_t bytes, bool vast) {
    return address_space().take(bytes, vast);
}

void give_pages_back(std::byte* begin, std::size_t bytes) {
    address_space().give_back(begin, bytes);
}

void set_owner(std::byte* begin, std::size_t bytes, const Buffer* owner) {
    address_space().own(begin, bytes, owner);
}

const Buffer* owner_of(const void* address) {
    return address_space().owner(address);
}

}  // namespace jitney::emulator
