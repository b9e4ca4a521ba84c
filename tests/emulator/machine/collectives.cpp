// Warps and blocks that meet: each comer leaves its operand, the last one does the work.
#include <fmt/format.h>

#include <cstring>

#include "tests/emulator/machine/block.hpp"
#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/instrumented.hpp"

namespace jitney::emulator {
namespace {

// Names of kinds are literals, and one may have several addresses.
bool same_kind(const char* one, const char* other) {
    return one == other || std::strcmp(one, other) == 0;
}

bool same_place(Where one, Where other) {
    return one.line == other.line && std::strcmp(one.file, other.file) == 0;
}

}  // namespace

Block::Group& Block::group_of(Thread& thread, const WarpCollective& collective, unsigned mask,
                              Where where) {
    Warp& warp = warps_[thread.warp()];
    const char* const kind = collective.kind;
    if ((mask >> thread.lane() & 1) == 0) {
        stop(thread, fmt::format("comes to {} whose mask {:#010x} leaves it out", kind, mask),
             where);
    }
    if ((mask & ~warp.lanes) != 0) {
        stop(thread,
             fmt::format("comes to {} whose mask {:#010x} names lanes that its warp does "
                         "not have (it has {:#010x})",
                         kind, mask, warp.lanes),
             where);
    }
    if ((mask & warp.exited) != 0) {
        stop(thread,
             fmt::format("comes to {} whose mask {:#010x} names lanes that have exited "
                         "({:#010x})",
                         kind, mask, mask & warp.exited),
             where);
    }
    for (Group& group : warp.groups) {
        if (group.mask != mask) continue;
        if (!same_kind(group.kind, kind)) {
            stop(thread,
                 fmt::format("comes to {} while lanes that it names wait at {}", kind, group.kind),
                 where);
        }
        for (unsigned lane = 0; collective.same_place && lane < kLanes; ++lane) {
            if ((group.arrived >> lane & 1) == 0) continue;
            const Where other = thread_at(thread.warp(), lane).waits_where;
            if (same_place(other, where)) break;
            stop(thread,
                 fmt::format("comes to {} while lane {} came to another, at {}:{}: all lanes "
                             "must execute the same instruction",
                             kind, lane, other.name(), other.line),
                 where);
        }
        return group;
    }
    warp.groups.push_back({.kind = kind, .mask = mask});
    return warp.groups.back();
}

void Block::meet(Thread& thread, const WarpCollective& collective, unsigned mask, void* operand,
                 Where where) {
    Warp& warp = warps_[thread.warp()];
    Group& group = group_of(thread, collective, mask, where);
    group.operands[thread.lane()] = operand;
    group.arrived |= 1u << thread.lane();
    if (group.arrived != mask) {
        thread.waits_mask = mask;
        wait(thread, collective.kind, where);
        return;
    }
    if (collective.act != nullptr) collective.act(group.operands.data(), mask);
    if (kInstrumented && collective.orders_memory) {
        std::vector<unsigned> threads;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((mask >> lane & 1) != 0) threads.push_back(thread_at(thread.warp(), lane).id);
        }
        cluster_->clocks().order(threads);
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if ((mask >> lane & 1) != 0) thread_at(thread.warp(), lane).waits_at = nullptr;
    }
    warp.ready |= mask;
    ready_warps_ |= 1u << warp.turn;
    group = warp.groups.back();
    warp.groups.pop_back();
    thread.fiber.suspend();
}

Block::Barrier& Block::come(Thread& thread, unsigned number, const char* kind, unsigned needed,
                            Where where) {
    Barrier& barrier = barriers_[number];
    if (barrier.arrived.empty()) {
        barrier.kind = kind;
        barrier.needed = needed;
        barrier.operands.assign(thread_count_, nullptr);
    }
    if (!same_kind(barrier.kind, kind) || barrier.needed != needed) {
        stop(thread,
             fmt::format("comes to {} of {} threads while others wait at {} of {} threads", kind,
                         needed, barrier.kind, barrier.needed),
             where);
    }
    for (const unsigned other : barrier.waiting) {
        const Thread& waiting = *threads_[other];
        if (waiting.warp() != thread.warp()) continue;
        if (same_place(waiting.waits_where, where)) break;
        stop(thread,
             fmt::format("comes to {} while thread {} of its warp came to another, at {}:{}", kind,
                         other, waiting.waits_where.name(), waiting.waits_where.line),
             where);
    }
    barrier.arrived.push_back(thread.id);
    return barrier;
}

// Those that went on learn nothing of those that came later.
void Block::open(Barrier& barrier) {
    if constexpr (kInstrumented) {
        Clocks& clocks = cluster_->clocks();
        if (barrier.waiting.size() != barrier.arrived.size()) {
            for (const unsigned waiting : barrier.waiting)
                clocks.release(threads_[waiting]->id, barrier.known);
            for (const unsigned waiting : barrier.waiting)
                clocks.acquire(threads_[waiting]->id, barrier.known);
        } else if (barrier.needed == thread_count_ && cluster_->size() == 1) {
            clocks.order_all();
        } else {
            clocks.order(barrier.arrived);
        }
    }
    barrier.known = {};
    for (const unsigned waiting : barrier.waiting)
        make_ready(*threads_[waiting]);
    barrier.arrived.clear();
    barrier.waiting.clear();
}

void Block::meet_all(Thread& thread, const char* kind, Act act, void* operand, Where where) {
    if (running_ != thread_count_) {
        stop(thread,
             fmt::format("comes to {} though {} threads of its block have exited", kind,
                         thread_count_ - running_),
             where);
    }
    Barrier& barrier = come(thread, 0, kind, thread_count_, where);
    barrier.operands[thread.number] = operand;
    barrier.waiting.push_back(thread.number);
    if (barrier.arrived.size() == barrier.needed) {
        if (act != nullptr) act(barrier.operands.data(), thread_count_);
        open(barrier);
        thread.fiber.suspend();
        return;
    }
    thread.waits_mask = 0;
    thread.waits_for = barrier.needed;
    wait(thread, kind, where);
}

void Block::meet_named(Thread& thread, unsigned number, unsigned threads, bool waits, Where where) {
    if (number == 0 || number >= barriers_.size() || threads == 0 || threads % kLanes != 0 ||
        threads > thread_count_) {
        stop(thread,
             fmt::format("comes to barrier {} of {} threads: barriers are 1 to 15, and "
                         "whole warps of the block take part",
                         number, threads),
             where);
    }
    Barrier& barrier = come(thread, number, "a named barrier", threads, where);
    if (waits) {
        barrier.waiting.push_back(thread.number);
    } else if constexpr (kInstrumented) {
        cluster_->clocks().release(thread.id, barrier.known);
    }
    if (barrier.arrived.size() == barrier.needed) {
        open(barrier);
        suspend_ready(thread);
        return;
    }
    if (!waits) return;
    thread.waits_mask = 0;
    thread.waits_for = threads;
    wait(thread, "a named barrier", where);
}

void Block::meet_warpgroup(Thread& thread, const char* kind, Act act, void* operand, Where where) {
    const unsigned number = thread.number / warpgroup_threads;
    if (number >= warpgroups_.size()) {
        stop(thread, fmt::format("comes to {}, and its block has no 128 threads there", kind),
             where);
    }
    Warpgroup& warpgroup = warpgroups_[number];
    if (!warpgroup.arrived.empty()) {
        const Thread& other = *threads_[warpgroup.arrived.front()];
        if (!same_kind(warpgroup.kind, kind) || !same_place(other.waits_where, where)) {
            stop(thread,
                 fmt::format("comes to {} while thread {} of its warpgroup came to {}, at {}:{}",
                             kind, other.number, warpgroup.kind, other.waits_where.name(),
                             other.waits_where.line),
                 where);
        }
    }
    warpgroup.kind = kind;
    warpgroup.arrived.push_back(thread.number);
    warpgroup.operands[thread.number % warpgroup_threads] = operand;
    if (warpgroup.arrived.size() < warpgroup_threads) {
        thread.waits_mask = 0;
        thread.waits_for = warpgroup_threads;
        wait(thread, kind, where);
        return;
    }
    thread.waits_where = where;
    act(warpgroup.operands.data(), warpgroup_threads);
    for (const unsigned other : warpgroup.arrived) {
        if (other != thread.number) make_ready(*threads_[other]);
    }
    warpgroup.arrived.clear();
    suspend_ready(thread);
}

void warp_collective(const WarpCollective& collective, unsigned mask, void* operand, Where where) {
    current_thread->block->meet(*current_thread, collective, mask, operand, where);
}

void block_collective(const char* kind, Act act, void* operand, Where where) {
    current_thread->block->meet_all(*current_thread, kind, act, operand, where);
}

void named_barrier(unsigned barrier, unsigned threads, bool waits, Where where) {
    current_thread->block->meet_named(*current_thread, barrier, threads, waits, where);
}

}  // namespace jitney::emulator
