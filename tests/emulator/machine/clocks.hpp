// Who knows of what, by vector clocks: the threads of all blocks of a cluster, and what works
// beside them, such as the copy engine. Those are agents: they act when a thread has told them to,
// and what they did is known to whoever waited for it alone, whatever barrier of threads stands
// between.
//
// Time of a thread is counted by the points at which others may learn what it did. A barrier of the
// one block that there is starts a new epoch: what threads did before it is ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace jitney::emulator {

// When somebody did something: epoch, number of the thread or agent, and clock, in 27, 13 and 22
// bits, above 2 bits that are the race detector's.
using Stamp = std::uint64_t;
constexpr unsigned kStampBits = 2;
constexpr unsigned kClockBits = 22;
constexpr unsigned kNumberBits = 13;

constexpr std::uint32_t epoch_of(Stamp stamp) {
    return static_cast<std::uint32_t>(stamp >> (kStampBits + kClockBits + kNumberBits));
}
constexpr unsigned number_of(Stamp stamp) {
    return static_cast<unsigned>(stamp >> (kStampBits + kClockBits)) & ((1u << kNumberBits) - 1);
}
constexpr std::uint32_t clock_of(Stamp stamp) {
    return static_cast<std::uint32_t>(stamp >> kStampBits) & ((1u << kClockBits) - 1);
}

// The time of one thread or agent, which epochs do not set back.
using Moment = std::uint64_t;
constexpr Moment moment_of(Stamp stamp) {
    return Moment{epoch_of(stamp)} << kClockBits | clock_of(stamp);
}

// What one knows: of each thread the clock in the newest epoch, and the moment of its last fence
// between ordinary accesses and agents; of each agent the moment up to which its work was waited
// for.
struct Known {
    std::uint32_t epoch = 0;  // of `clocks`
    std::vector<std::uint32_t> clocks;
    std::vector<Moment> moments;

    void learn(unsigned number, Moment moment) {
        if (moments.size() <= number) moments.resize(number + 1, 0);
        moments[number] = std::max(moments[number], moment);
    }
    void learn(const Known& other);
};

class Clocks {
  public:
    // A cluster starts, of blocks of so many threads.
    void begin(unsigned blocks, unsigned threads_a_block);
    // One more that acts beside the threads; `name` is for reports.
    unsigned add_agent(std::string name);
    bool is_thread(unsigned number) const { return number < threads_; }
    std::string name_of(unsigned number) const;

    Stamp now(unsigned number) const {
        const std::uint32_t own =
            is_thread(number) ? known_[number].own : agents_[number - threads_].own;
        return Stamp{epoch_} << (kStampBits + kClockBits + kNumberBits) |
               Stamp{number} << (kStampBits + kClockBits) | Stamp{own} << kStampBits;
    }
    // What follows is later than what was.
    void advance(unsigned number) {
        ++(is_thread(number) ? known_[number].own : agents_[number - threads_].own);
    }

    // Every thread passed a barrier, where one block is all there is; and those threads did.
    void order_all();
    void order(const std::vector<unsigned>& threads);
    // What the thread did and knows goes into `into`, or what is there becomes known to it.
    void release(unsigned thread, Known& into);
    void acquire(unsigned thread, const Known& from) { known_[thread].known.learn(from); }
    // The thread has waited for an agent.
    void learn(unsigned thread, unsigned agent, Moment moment) {
        known_[thread].known.learn(agent, moment);
    }
    // What the thread did before can be seen by agents, wherever it is known.
    void fence(unsigned thread) {
        known_[thread].known.learn(thread, moment_of(now(thread)));
        advance(thread);
    }

    std::uint32_t first_epoch() const { return first_epoch_; }
    // Whether something that was done, by a thread or an agent, came before what `thread` does now.
    bool ordered(Stamp noted, unsigned thread) const {
        const unsigned other = number_of(noted);
        if (other == thread || epoch_of(noted) < first_epoch_) return true;
        if (!is_thread(other)) return knows(thread, other, moment_of(noted));
        if (epoch_of(noted) != epoch_) return true;
        const Known& known = known_[thread].known;
        return known.epoch == epoch_ && other < known.clocks.size() &&
               known.clocks[other] >= clock_of(noted);
    }
    // Whether `thread` knows of a fence that the thread made behind it.
    bool fenced(Stamp noted, unsigned thread) const {
        const unsigned other = number_of(noted);
        return !is_thread(other) || epoch_of(noted) < first_epoch_ ||
               knows(thread, other, moment_of(noted));
    }

  private:
    struct Own {
        std::uint32_t own = 1;
        Known known;
    };
    struct Agent {
        std::string name;
        std::uint32_t own = 1;
    };

    bool knows(unsigned thread, unsigned other, Moment moment) const {
        const auto has = [&](const std::vector<Moment>& moments) {
            return other < moments.size() && moments[other] >= moment;
        };
        return has(known_[thread].known.moments) || has(common_);
    }

    unsigned threads_ = 0;
    unsigned threads_a_block_ = 0;
    std::vector<Own> known_;  // by thread; may be more than there are
    std::vector<Agent> agents_;
    std::vector<Moment> common_;  // what every thread knew at the last barrier of all
    std::uint32_t epoch_ = 0;
    std::uint32_t first_epoch_ = 0;  // of this cluster
};

}  // namespace jitney::emulator
