#include "runtime/kernel_table.hpp"

namespace jitney::runtime {
namespace {

constexpr std::size_t kFirstCapacity = 512;

}  // namespace

KernelTable::KernelTable() {
    tables_.push_back(std::make_unique<Slots>(kFirstCapacity));
    slots_.store(tables_.back().get(), std::memory_order_release);
}

KernelTable::~KernelTable() = default;

void KernelTable::place(Slots& slots, const Row* row) noexcept {
    std::size_t at = row->hash & slots.mask;
    while (slots.rows[at].load(std::memory_order_relaxed) != nullptr)
        at = (at + 1) & slots.mask;
    slots.rows[at].store(row, std::memory_order_release);
}

const Kernel& KernelTable::insert(const KernelKey& key, int device, const Kernel& kernel) {
    const std::lock_guard lock(mutex_);
    if (const Kernel* found = find(key, device)) return *found;
    rows_.push_back(std::make_unique<const Row>(Row{hash_of(key, device), key, device, kernel}));
    const Row* row = rows_.back().get();
    Slots& current = *tables_.back();
    if (2 * rows_.size() > current.mask + 1) {
        auto larger = std::make_unique<Slots>(2 * (current.mask + 1));
        for (const auto& each : rows_)
            place(*larger, each.get());
        tables_.push_back(std::move(larger));
        slots_.store(tables_.back().get(), std::memory_order_release);
    } else {
        place(current, row);
    }
    size_.store(rows_.size(), std::memory_order_relaxed);
    return row->kernel;
}

}  // namespace jitney::runtime
