// The kernels in memory: a hash table that readers search without a lock while one writer adds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/kernel.hpp"

namespace jitney::runtime {

struct KernelKeyHash {
    std::size_t operator()(const KernelKey& key) const noexcept {
        std::uint64_t hash = 0x9e3779b97f4a7c15u;
        for (const std::uint64_t word : key.words) {
            hash ^= word;
            hash *= 0xd6e8feb86659fd93u;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

class KernelTable {
  public:
    KernelTable();
    KernelTable(const KernelTable&) = delete;
    KernelTable& operator=(const KernelTable&) = delete;
    ~KernelTable();

    const Kernel* find(const KernelKey& key, int device) const noexcept {
        const std::uint64_t hash = hash_of(key, device);
        const Slots* slots = slots_.load(std::memory_order_acquire);
        for (std::size_t at = hash & slots->mask;; at = (at + 1) & slots->mask) {
            const Row* row = slots->rows[at].load(std::memory_order_acquire);
            if (row == nullptr) return nullptr;
            if (row->hash == hash && row->device == device && row->key == key) return &row->kernel;
        }
    }

    // The kernel that stands in the table afterwards: the one given, or that of an earlier call
    // with the same key. Its address never changes.
    const Kernel& insert(const KernelKey& key, int device, const Kernel& kernel);

    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  private:
    struct Row {
        std::uint64_t hash;
        KernelKey key;
        int device;
        Kernel kernel;
    };
    // At most half full, so that a search always ends at an empty slot.
    struct Slots {
        explicit Slots(std::size_t capacity) : mask(capacity - 1), rows(capacity) {}
        std::size_t mask;
        std::vector<std::atomic<const Row*>> rows;
    };

    static std::uint64_t hash_of(const KernelKey& key, int device) noexcept {
        return KernelKeyHash()(key) + static_cast<std::uint64_t>(device);
    }
    static void place(Slots& slots, const Row* row) noexcept;

    std::atomic<const Slots*> slots_;
    std::atomic<std::size_t> size_{0};
    std::mutex mutex_;  // of the writers
    // Every table that ever was: a reader may still be searching an outgrown one.
    std::vector<std::unique_ptr<Slots>> tables_;
    std::vector<std::unique_ptr<const Row>> rows_;
};

}  // namespace jitney::runtime
