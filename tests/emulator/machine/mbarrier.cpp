#include "tests/emulator/machine/mbarrier.hpp"

#include <fmt/format.h>

#include <utility>

namespace jitney::emulator {

std::string CountingBarrier::lacks() const {
    return fmt::format("{} of {} arrivals and {} bytes", missing, arrivals, bytes);
}

std::string CountingBarrier::arrive() {
    if (missing == 0) {
        return fmt::format(
            "arrives at a barrier that was made for {} arrivals and had them all; it "
            "lacks {} bytes",
            arrivals, bytes);
    }
    --missing;
    return {};
}

std::string CountingBarrier::announce(std::int64_t count) {
    bytes += count;
    if (bytes > kMostBytes || bytes < -kMostBytes) {
        return fmt::format("has a barrier wait for {} bytes, which counts up to {}", bytes,
                           kMostBytes);
    }
    return {};
}

bool CountingBarrier::end_phase() {
    if (missing != 0 || bytes != 0) return false;
    ++phase;
    brought = std::exchange(brought_now, false);
    missing = arrivals;
    phase_over.learn(phase_now);
    phase_now = {};
    return true;
}

void CountingBarriers::clear() {
    barriers_.clear();
    begin_ = end_ = 0;
}

CountingBarrier& CountingBarriers::make(std::size_t offset) {
    begin_ = barriers_.empty() ? offset : std::min(begin_, offset);
    end_ = std::max(end_, offset + kBytes);
    return barriers_[offset] = CountingBarrier{};
}

CountingBarrier* CountingBarriers::find(std::size_t offset) {
    const auto found = barriers_.find(offset);
    return found == barriers_.end() ? nullptr : &found->second;
}

bool CountingBarriers::touches_one(std::size_t offset, std::size_t bytes) const {
    auto next = barriers_.lower_bound(offset);
    if (next != barriers_.end() && next->first < offset + bytes) return true;
    return next != barriers_.begin() && std::prev(next)->first + kBytes > offset;
}

}  // namespace jitney::emulator
