// A block that runs: its threads, its shared memory, and who goes next.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/machine/arena.hpp"
#include "tests/emulator/machine/race.hpp"
#include "tests/emulator/machine/random.hpp"
#include "tests/emulator/machine/thread.hpp"

namespace jitney::emulator {

// What all blocks of a launch have in common.
struct Grid {
    const char* kernel = "";
    void (*call)(void* const* arguments) = nullptr;
    void* const* arguments = nullptr;
    Index grid_size;
    Index block_size;
    std::size_t shared_bytes = 0;
    bool programmatic = false;  // may begin before the grid before has ended
};

class Block {
  public:
    // Starts a block in place of the one that ran here before.
    void begin(const Grid& grid, Index index, std::uint64_t seed);
    enum class State { runs, sleeps, finished };
    // Lets up to that many threads run until they suspend. Throws Fault.
    State run(unsigned turns);

    // The rest is for the threads.
    void suspend_ready(Thread& thread);  // others first
    void suspend_block(Thread& thread);  // other blocks first
    // Ends the launch with a report. The thread's stack is not unwound: what it holds is lost, so
    // that the caller's text is taken over.
    [[noreturn]] void stop(Thread& thread, std::string&& what, Where where);

    void meet(Thread& thread, const WarpCollective& collective, unsigned mask, void* operand,
              Where where);
    void meet_all(Thread& thread, const char* kind, Act act, void* operand, Where where);
    void meet_named(Thread& thread, unsigned barrier, unsigned threads, bool waits, Where where);

    Arena& arena() { return arena_; }
    Random& random() { return random_; }
    // Notes an access to shared memory; a fault where it races, or should not be.
    void access(Thread& thread, const void* address, std::size_t bytes, bool write,
                const void* place);
    void atomic_access(Thread& thread, const void* address, std::size_t bytes, Where where);
    void landed(Thread& thread, std::size_t offset, std::size_t bytes);

    static constexpr unsigned max_threads = 1024;

  private:
    static constexpr unsigned kLanes = 32;

    // Lanes on their way to a collective.
    struct Group {
        const char* kind = nullptr;
        unsigned mask = 0;
        unsigned arrived = 0;
        std::array<void*, kLanes> operands{};
    };
    struct Warp {
        unsigned lanes = 0;  // that exist
        unsigned ready = 0;
        unsigned exited = 0;
        unsigned turn = 0;  // its bit in ready_warps_
        std::vector<Group> groups;
    };
    struct Barrier {
        const char* kind = nullptr;
        unsigned needed = 0;
        std::vector<unsigned> arrived;
        std::vector<unsigned> waiting;
        std::vector<void*> operands;  // by thread
    };

    static void enter(void* thread);
    Thread& next();
    void shuffle_warps();
    void make_ready(Thread& thread);
    void wait(Thread& thread, const char* kind, Where where);
    void exit(Thread& thread);
    Group& group_of(Thread& thread, const WarpCollective& collective, unsigned mask, Where where);
    Barrier& come(Thread& thread, unsigned barrier, const char* kind, unsigned needed, Where where);
    void open(Barrier& barrier);
    std::string who_waits_where() const;
    std::string report(const std::string& what) const;
    Thread& thread_at(unsigned warp, unsigned lane) { return *threads_[warp * kLanes + lane]; }

    const Grid* grid_ = nullptr;
    Index index_;
    Arena arena_;
    RaceDetector races_;
    Random random_{0};
    unsigned shuffle_once_in_ = 1;
    bool sleeps_ = false;
    unsigned thread_count_ = 0;
    unsigned running_ = 0;                          // threads that have not exited
    std::vector<std::unique_ptr<Thread>> threads_;  // kept from block to block
    std::vector<Warp> warps_;
    unsigned ready_warps_ = 0;  // bit i: warp turns_[i] has a ready lane
    std::array<unsigned, kLanes> turns_{};
    std::array<Barrier, 16> barriers_;
    std::string fault_;
    bool faulted_ = false;
};

// The thread that runs now, and null outside of blocks.
extern thread_local constinit Thread* current_thread;

}  // namespace jitney::emulator
