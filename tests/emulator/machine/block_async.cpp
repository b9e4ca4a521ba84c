// What a block does for the copy engine and for barriers that count.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/fault.hpp"
#include "tests/emulator/machine/instrumented.hpp"

namespace jitney::emulator {

void Block::make_barrier(Thread& maker, std::size_t offset, unsigned arrivals, Where where) {
    if (arrivals == 0 || arrivals > CountingBarrier::kMostArrivals) {
        stop(maker, fmt::format("makes a barrier for {} arrivals", arrivals), where);
    }
    if (counting_.touch(offset, CountingBarriers::kBytes)) {
        stop(maker, fmt::format("makes a barrier at offset {}, where one is", offset), where);
    }
    access(maker, arena_.begin() + offset, CountingBarriers::kBytes, true,
           __builtin_return_address(0));
    CountingBarrier& barrier = counting_.make(offset);
    barrier.arrivals = barrier.missing = arrivals;
    barrier.made = cluster_->clocks().now(maker.id);
    barrier.agent = cluster_->clocks().add_agent(
        fmt::format("the copy engine for the barrier at offset {}", offset));
}

void Block::show_barriers(const Thread& maker) {
    const Stamp now = cluster_->clocks().now(maker.id);
    counting_.for_each([&](CountingBarrier& barrier) {
        if (barrier.shown == 0 && number_of(barrier.made) == maker.id) barrier.shown = now;
    });
}

CountingBarrier& Block::barrier_for(Thread& user, std::size_t offset, bool from_outside,
                                    Where where) {
    CountingBarrier* const barrier = counting_.find(offset);
    if (barrier == nullptr || is_finished()) {
        user.block->stop(
            user,
            fmt::format("comes to a barrier at offset {} of shared memory, where none is", offset),
            where);
    }
    if constexpr (kInstrumented) {
        const Clocks& clocks = cluster_->clocks();
        if (!clocks.ordered(barrier->made, user.id)) {
            user.block->stop(user,
                             fmt::format("comes to the barrier at offset {} that {} made, and "
                                         "nothing orders the two",
                                         offset, clocks.name_of(number_of(barrier->made))),
                             where);
        }
        if (from_outside && (barrier->shown == 0 || !clocks.ordered(barrier->shown, user.id))) {
            user.block->stop(user,
                             fmt::format("has the barrier at offset {} used from outside of its "
                                         "block's threads, and {} made no fence behind it",
                                         offset, clocks.name_of(number_of(barrier->made))),
                             where);
        }
    }
    return *barrier;
}

void Block::finish_phase(CountingBarrier& barrier) {
    if (!barrier.end_phase()) return;
    for (const unsigned number : std::exchange(barrier.waiting, {}))
        wake(number);
}

void Block::arrive(Thread& user, std::size_t offset, std::int64_t bytes, Where where) {
    CountingBarrier& barrier = barrier_for(user, offset, user.block != this, where);
    if constexpr (kInstrumented) cluster_->clocks().release(user.id, barrier.phase_now);
    std::string wrong = barrier.announce(bytes);
    if (wrong.empty()) wrong = barrier.arrive();
    if (!wrong.empty()) user.block->stop(user, std::move(wrong), where);
    cluster_->note_event();
    finish_phase(barrier);
}

bool Block::phase_ended(Thread& user, std::size_t offset, unsigned parity, Where where) {
    CountingBarrier& barrier = barrier_for(user, offset, false, where);
    if (!barrier.ended(parity)) return false;
    barrier.brought = false;
    if constexpr (kInstrumented) cluster_->clocks().acquire(user.id, barrier.phase_over);
    return true;
}

void Block::give_registers(const Thread& thread, unsigned count) {
    registers_.give(thread.warp(), count);
    for (const unsigned number : std::exchange(wait_for_registers_, {}))
        wake(number);
}

void Block::take_registers(Thread& thread, unsigned count, Where where) {
    while (!registers_.take(thread.warp(), count)) {
        wait_for_registers_.push_back(thread.number);
        thread.waits_mask = 0;
        thread.waits_for = 0;
        thread.waits_barrier = kNoBarrier;
        wait(thread, "setmaxnreg.inc", where);
    }
}

void Block::wait_for_phase(Thread& thread, std::size_t offset, unsigned parity, Where where) {
    barrier_for(thread, offset, false, where).waiting.push_back(thread.number);
    thread.waits_mask = 0;
    thread.waits_for = 0;
    thread.waits_barrier = offset;
    thread.waits_phase = parity;
    wait(thread, "a barrier that counts", where);
}

// Threads that only look, and have not yet done so in vain since something happened last.
bool Block::end_looks() {
    bool any = false;
    for (unsigned number = 0; number < thread_count_; ++number) {
        Thread& thread = *threads_[number];
        if (thread.waits_at == nullptr || !thread.looks || thread.looked_at == cluster_->events()) {
            continue;
        }
        thread.looked_at = cluster_->events();
        std::erase(counting_.find(thread.waits_barrier)->waiting, number);
        make_ready(thread);
        any = true;
    }
    return any;
}

void Block::expect(Thread& user, const Copy& copy, Where where) {
    barrier_for(user, copy.barrier, true, where);
    std::string wrong;
    if (counting_.touch(copy.offset, copy.bytes)) {
        wrong = fmt::format("copies {} bytes to offset {} of shared memory, where a barrier is",
                            copy.bytes, copy.offset);
    } else if (arena_.in_flight(copy.offset, copy.bytes)) {
        wrong = fmt::format(
            "copies {} bytes to offset {} of shared memory, where another copy has "
            "not landed",
            copy.bytes, copy.offset);
    } else if constexpr (kInstrumented) {
        wrong = races_.agent_will_write(user.id, copy.offset, copy.bytes, copy.place);
    }
    if (!wrong.empty()) user.block->stop(user, std::move(wrong), where);
    arena_.set_in_flight(copy.offset, copy.bytes);
}

void Block::land(const Copy& copy, std::span<const std::byte> box) {
    arena_.set_landed(copy.offset, copy.bytes);
    const unsigned address = Arena::first_address + static_cast<unsigned>(copy.offset);
    for (unsigned at = 0; at < copy.bytes; at += 16) {
        std::memcpy(
            arena_.begin() + swizzled(address + at, copy.map.swizzle_bytes) - Arena::first_address,
            box.data() + at, 16);
    }
    CountingBarrier& barrier = *counting_.find(copy.barrier);
    barrier.brought_now = true;
    cluster_->note_event();
    if constexpr (kInstrumented) {
        Clocks& clocks = cluster_->clocks();
        races_.agent_wrote(barrier.agent, copy.offset, copy.bytes, copy.place);
        barrier.phase_now.learn(barrier.agent, moment_of(clocks.now(barrier.agent)));
        clocks.advance(barrier.agent);
    }
    if (std::string wrong = barrier.announce(-static_cast<std::int64_t>(copy.bytes));
        !wrong.empty()) {
        throw Fault(report("it " + wrong));
    }
    finish_phase(barrier);
}

}  // namespace jitney::emulator
