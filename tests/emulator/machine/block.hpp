// A block that runs: its threads, its shared memory, and who goes next.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/emulator/machine/arena.hpp"
#include "tests/emulator/machine/copy_engine.hpp"
#include "tests/emulator/machine/mbarrier.hpp"
#include "tests/emulator/machine/race.hpp"
#include "tests/emulator/machine/random.hpp"
#include "tests/emulator/machine/register_pool.hpp"
#include "tests/emulator/machine/thread.hpp"

namespace jitney::emulator {

class Cluster;

// What all blocks of a launch have in common.
struct Grid {
    const char* kernel = "";
    void (*call)(void* const* arguments) = nullptr;
    void* const* arguments = nullptr;
    Index grid_size;
    Index block_size;
    Index cluster_size{1, 1, 1};
    std::size_t shared_bytes = 0;
    bool programmatic = false;  // may begin before the grid before has ended
};

class Block {
  public:
    // Of a cluster, its block of that number there.
    Block(Cluster& cluster, unsigned rank) : cluster_(&cluster), rank_(rank) {}

    // Starts a block in place of the one that ran here before.
    void begin(const Grid& grid, Index index, std::uint64_t seed);
    enum class State { runs, sleeps, stuck, finished };
    // Lets up to that many threads run until they suspend. Throws Fault.
    State run(unsigned turns);
    bool is_finished() const { return running_ == 0; }
    bool can_run() const { return ready_warps_ != 0; }
    unsigned running() const { return running_; }
    unsigned rank() const { return rank_; }
    std::string report(const std::string& what) const;

    // The rest is for the threads.
    void suspend_ready(Thread& thread);  // others first
    void suspend_block(Thread& thread);  // other blocks first
    // Until somebody wakes the thread.
    void wait(Thread& thread, const char* kind, Where where);
    void wake(unsigned number) { make_ready(*threads_[number]); }
    // Ends the launch with a report. The thread's stack is not unwound: what it holds is lost, so
    // that the caller's text is taken over.
    [[noreturn]] void stop(Thread& thread, std::string&& what, Where where);

    void meet(Thread& thread, const WarpCollective& collective, unsigned mask, void* operand,
              Where where);
    void meet_all(Thread& thread, const char* kind, Act act, void* operand, Where where);
    void meet_named(Thread& thread, unsigned barrier, unsigned threads, bool waits, Where where);
    // The 128 threads of a warpgroup, which orders nothing.
    void meet_warpgroup(Thread& thread, const char* kind, Act act, void* operand, Where where);

    Arena& arena() { return arena_; }
    Random& random() { return random_; }
    Cluster& cluster() { return *cluster_; }
    RaceDetector& races() { return races_; }
    RegisterPool& registers() { return registers_; }
    Thread& thread(unsigned number) { return *threads_[number]; }
    // Notes an access to shared memory; a fault where it races, or should not be.
    void access(Thread& thread, const void* address, std::size_t bytes, bool write,
                const void* place);
    void atomic_access(Thread& thread, const void* address, std::size_t bytes, Where where);
    void landed(Thread& thread, std::size_t offset, std::size_t bytes);

    // Barriers that count, by their offsets. `user` may be of another block of the cluster.
    void make_barrier(Thread& maker, std::size_t offset, unsigned arrivals, Where where);
    void show_barriers(const Thread& maker);  // to agents and other blocks
    CountingBarrier& barrier_for(Thread& user, std::size_t offset, bool from_outside, Where where);
    void arrive(Thread& user, std::size_t offset, std::int64_t bytes, Where where);
    bool phase_ended(Thread& user, std::size_t offset, unsigned parity, Where where);
    void wait_for_phase(Thread& thread, std::size_t offset, unsigned parity, Where where);
    bool end_looks();  // of threads that need not wait; false: there are none
    void give_registers(const Thread& thread, unsigned count);
    void take_registers(Thread& thread, unsigned count, Where where);
    // What the tensor cores of a warp are to clocks.
    unsigned tensor_cores(unsigned warp);
    // A copy to this block's shared memory: before it is on the way, and when it lands.
    void expect(Thread& user, const Copy& copy, Where where);
    void land(const Copy& copy, std::span<const std::byte> box);

    static constexpr unsigned max_threads = 1024;
    static constexpr unsigned warpgroup_threads = 128;

  private:
    static constexpr unsigned kLanes = 32;
    static constexpr std::size_t kNoBarrier = ~std::size_t{0};

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
        unsigned turn = 0;          // its bit in ready_warps_
        unsigned tensor_cores = 0;  // as clocks know them; 0: not yet
        std::vector<Group> groups;
    };
    struct Barrier {
        const char* kind = nullptr;
        unsigned needed = 0;
        std::vector<unsigned> arrived;
        std::vector<unsigned> waiting;
        std::vector<void*> operands;  // by thread
        Known known;                  // to those that arrived and did not wait
    };
    struct Warpgroup {
        const char* kind = nullptr;
        std::vector<unsigned> arrived;
        std::array<void*, warpgroup_threads> operands{};
    };

    static void enter(void* thread);
    Thread& next();
    void shuffle_warps();
    void make_ready(Thread& thread);
    void exit(Thread& thread);
    void finish_phase(CountingBarrier& barrier);
    Group& group_of(Thread& thread, const WarpCollective& collective, unsigned mask, Where where);
    Barrier& come(Thread& thread, unsigned barrier, const char* kind, unsigned needed, Where where);
    void open(Barrier& barrier);
    std::string who_waits_where() const;
    std::string what_is_needed(const Thread& waiting) const;
    Thread& thread_at(unsigned warp, unsigned lane) { return *threads_[warp * kLanes + lane]; }

    Cluster* cluster_;
    unsigned rank_;
    const Grid* grid_ = nullptr;
    Index index_;
    Arena arena_;
    RaceDetector races_;
    RegisterPool registers_;
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
    std::vector<Warpgroup> warpgroups_;
    std::vector<unsigned> wait_for_registers_;
    mutable CountingBarriers counting_;
    std::string fault_;
    bool faulted_ = false;
};

// The thread that runs now, and null outside of blocks.
extern thread_local constinit Thread* current_thread;

}  // namespace jitney::emulator
