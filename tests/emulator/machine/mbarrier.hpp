// The barriers in a block's shared memory that count arrivals and bytes (mbarrier).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/emulator/machine/clocks.hpp"

namespace jitney::emulator {

struct CountingBarrier {
    unsigned arrivals = 0;     // that a phase takes
    unsigned missing = 0;      // of the phase that is not over
    std::int64_t bytes = 0;    // announced and not landed; below 0 where they landed first
    unsigned phase = 0;        // how many are over
    bool brought_now = false;  // copies have landed in this phase, or in the last one, of which
    bool brought = false;      // nobody knows yet
    unsigned agent = 0;        // the copies that it counts, as clocks know them
    Stamp made = 0;
    Stamp shown = 0;  // when its maker made a fence behind that; 0: not yet
    Known phase_over;
    Known phase_now;
    std::vector<unsigned> waiting;  // numbers of threads

    // Whether copies came that nobody has waited for.
    bool leaves_copies() const { return brought || brought_now; }

    static constexpr std::int64_t kMostBytes = (1 << 20) - 1;
    static constexpr unsigned kMostArrivals = (1 << 20) - 1;

    // The phase of this parity has ended: the one before that which runs.
    bool ended(unsigned parity) const { return (phase & 1u) != (parity & 1u); }
    // What keeps the phase from ending, for a report.
    std::string lacks() const;
    // An arrival, or bytes announced or landed. What was wrong with it, if anything.
    std::string arrive();
    std::string announce(std::int64_t count);
    // Ends the phase if nothing is missing; true where it did.
    bool end_phase();
};

class CountingBarriers {
  public:
    static constexpr std::size_t kBytes = 8;

    void clear();
    CountingBarrier& make(std::size_t offset);
    CountingBarrier* find(std::size_t offset);
    // Whether these bytes are of a barrier.
    bool touch(std::size_t offset, std::size_t bytes) const {
        return offset < end_ && offset + bytes > begin_ && touches_one(offset, bytes);
    }
    // Calls body(barrier) for each.
    template <class Body>
    void for_each(const Body& body) {
        for (auto& [offset, barrier] : barriers_)
            body(barrier);
    }
    bool leave_copies() const {
        return std::ranges::any_of(barriers_,
                                   [](const auto& each) { return each.second.leaves_copies(); });
    }

  private:
    bool touches_one(std::size_t offset, std::size_t bytes) const;

    std::map<std::size_t, CountingBarrier> barriers_;  // by their offsets in shared memory
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace jitney::emulator
