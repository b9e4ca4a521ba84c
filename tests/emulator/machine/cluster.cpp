#include "tests/emulator/machine/cluster.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tests/emulator/machine/fault.hpp"

namespace jitney::emulator {
namespace {

Index index_of(std::uint64_t number, Index grid) {
    return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
            static_cast<unsigned>(number / grid.x / grid.y)};
}

}  // namespace

void Cluster::begin(const Grid& grid, std::uint64_t number, std::uint64_t seed) {
    const Index shape = grid.cluster_size;
    size_ = shape.x * shape.y * shape.z;
    while (blocks_.size() < size_)
        blocks_.push_back(std::make_unique<Block>(*this, static_cast<unsigned>(blocks_.size())));
    random_ = Random(seed);
    const unsigned threads = grid.block_size.x * grid.block_size.y * grid.block_size.z;
    clocks_.begin(size_, threads);
    copies_.clear();
    // How soon copies land: at once, late, or when nobody can go on without them.
    constexpr std::array paces = {4u, 256u, 1u << 20};
    land_once_in_ = paces[random_.below(paces.size())];
    events_ = 1;
    phase_ = came_ = 0;
    threads_ = size_ * threads;
    phase_over_ = phase_now_ = {};
    waiting_.clear();
    const Index clusters = {grid.grid_size.x / shape.x, grid.grid_size.y / shape.y,
                            grid.grid_size.z / shape.z};
    const Index corner = index_of(number, clusters);
    for (unsigned rank = 0; rank < size_; ++rank) {
        const Index within = index_of(rank, shape);
        blocks_[rank]->begin(grid,
                             {corner.x * shape.x + within.x, corner.y * shape.y + within.y,
                              corner.z * shape.z + within.z},
                             size_ == 1 ? seed : random_.next());
    }
}

Block::State Cluster::run(unsigned turns) {
    if (size_ == 1) {
        for (;;) {
            const Block::State state = blocks_[0]->run(turns);
            if (state == Block::State::finished) {
                while (!copies_.empty())
                    land_one();
            }
            if (state != Block::State::stuck) return state;
            force();
        }
    }
    std::vector<Block*> able;
    for (unsigned i = 0; i < turns; i += 16) {
        able.clear();
        bool finished = true;
        for (unsigned rank = 0; rank < size_; ++rank) {
            finished = finished && blocks_[rank]->is_finished();
            if (blocks_[rank]->can_run()) able.push_back(blocks_[rank].get());
        }
        if (finished) {
            while (!copies_.empty())
                land_one();
            return Block::State::finished;
        }
        if (able.empty()) {
            force();
            continue;
        }
        Block& block = *able[random_.below(static_cast<unsigned>(able.size()))];
        if (block.run(16) == Block::State::sleeps) return Block::State::sleeps;
    }
    return Block::State::runs;
}

void Cluster::force() {
    if (!copies_.empty()) {
        land_one();
        return;
    }
    bool looked = false;
    for (unsigned rank = 0; rank < size_; ++rank)
        looked = blocks_[rank]->end_looks() || looked;
    if (looked) return;
    std::string text;
    for (unsigned rank = 0; rank < size_; ++rank) {
        const Block& block = *blocks_[rank];
        if (block.is_finished()) continue;
        text +=
            block.report(fmt::format("{} threads wait for what will not come", block.running()));
    }
    throw Fault(text);
}

void Cluster::open_if_all_came() {
    if (came_ != threads_ || came_ == 0) return;
    ++phase_;
    came_ = 0;
    phase_over_.learn(phase_now_);
    phase_now_ = {};
    for (Thread* thread : waiting_)
        thread->block->wake(thread->number);
    waiting_.clear();
}

void Cluster::arrive(Thread& thread, Where where) {
    if (thread.arrived_at_cluster) {
        thread.block->stop(thread, "arrives at the cluster's barrier twice without a wait between",
                           where);
    }
    thread.arrived_at_cluster = true;
    thread.cluster_phase = phase_;
    clocks_.release(thread.id, phase_now_);
    ++came_;
    open_if_all_came();
}

void Cluster::wait(Thread& thread, Where where) {
    if (!thread.arrived_at_cluster) {
        thread.block->stop(thread, "waits at the cluster's barrier without having arrived", where);
    }
    while (phase_ == thread.cluster_phase) {
        waiting_.push_back(&thread);
        thread.waits_mask = 0;
        thread.waits_for = threads_;
        thread.block->wait(thread, "the cluster's barrier", where);
    }
    thread.arrived_at_cluster = false;
    clocks_.acquire(thread.id, phase_over_);
}

void Cluster::exited(Thread& thread) {
    if (thread.arrived_at_cluster) {
        thread.block->stop(thread, "exits without having waited at the cluster's barrier", {});
    }
    --threads_;
    note_event();
    open_if_all_came();
}

}  // namespace jitney::emulator
