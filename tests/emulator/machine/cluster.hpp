// Blocks that run at the same time and reach each other's shared memory; most are of one block.
// With them run the copies that they asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/emulator/machine/block.hpp"
#include "tests/emulator/machine/clocks.hpp"
#include "tests/emulator/machine/copy_engine.hpp"

namespace jitney::emulator {

class Cluster {
  public:
    Cluster() = default;
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    // Starts the cluster of that number of the grid in place of the one that ran here before.
    void begin(const Grid& grid, std::uint64_t number, std::uint64_t seed);
    // Lets up to that many threads run until they suspend. Throws Fault.
    Block::State run(unsigned turns);

    // The rest is for the blocks and their threads.
    unsigned size() const { return size_; }
    Block& block(unsigned rank) { return *blocks_[rank]; }
    Clocks& clocks() { return clocks_; }
    CopyEngine& copies() { return copies_; }
    // A place where a copy may land.
    void tick() {
        if (!copies_.empty() && random_.once_in(land_once_in_)) land_one();
    }

    // Arrivals and copies that landed, and threads that exited, so far.
    std::uint64_t events() const { return events_; }
    void note_event() { ++events_; }

    void arrive(Thread& thread, Where where);
    void wait(Thread& thread, Where where);
    void exited(Thread& thread);

  private:
    void land_one() { copies_.land(random_.below(static_cast<unsigned>(copies_.size()))); }
    void open_if_all_came();
    // Nobody can go on: a copy lands, or looks end in vain; else that is a deadlock.
    void force();

    unsigned size_ = 1;
    std::vector<std::unique_ptr<Block>> blocks_;  // kept from cluster to cluster
    Clocks clocks_;
    CopyEngine copies_;
    Random random_{0};
    unsigned land_once_in_ = 1;
    std::uint64_t events_ = 1;

    // The barrier of the cluster.
    unsigned phase_ = 0;
    unsigned came_ = 0;
    unsigned threads_ = 0;  // that have not exited
    Known phase_over_;
    Known phase_now_;
    std::vector<Thread*> waiting_;
};

}  // namespace jitney::emulator
