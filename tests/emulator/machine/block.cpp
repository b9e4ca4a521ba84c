#include "tests/emulator/machine/block.hpp"

#include <fmt/format.h>

#include <bit>
#include <numeric>
#include <utility>

#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/fault.hpp"
#include "tests/emulator/machine/instrumented.hpp"

namespace jitney::emulator {

thread_local constinit const Builtins* builtins = nullptr;
thread_local constinit Thread* current_thread = nullptr;

void Block::begin(const Grid& grid, Index index, std::uint64_t seed) {
    grid_ = &grid;
    index_ = index;
    random_ = Random(seed);
    thread_count_ = grid.block_size.x * grid.block_size.y * grid.block_size.z;
    running_ = thread_count_;
    faulted_ = false;
    fault_.clear();
    arena_.begin_block(grid.shared_bytes);
    if constexpr (kInstrumented) races_.begin_block(grid.shared_bytes, cluster_->clocks());
    for (Barrier& barrier : barriers_)
        barrier = Barrier{};
    counting_.clear();
    wait_for_registers_.clear();
    warpgroups_.assign(thread_count_ / warpgroup_threads, Warpgroup{});

    warps_.assign((thread_count_ + kLanes - 1) / kLanes, Warp{});
    registers_.begin(static_cast<unsigned>(warps_.size()));
    while (threads_.size() < thread_count_)
        threads_.push_back(std::make_unique<Thread>());
    for (unsigned number = 0; number < thread_count_; ++number) {
        Thread& thread = *threads_[number];
        thread.block = this;
        thread.number = number;
        thread.id = rank_ * thread_count_ + number;
        thread.thread_index = {number % grid.block_size.x,
                               number / grid.block_size.x % grid.block_size.y,
                               number / grid.block_size.x / grid.block_size.y};
        thread.block_index = index;
        thread.block_size = grid.block_size;
        thread.grid_size = grid.grid_size;
        thread.exited = false;
        thread.waited_for_grid = !grid.programmatic;
        thread.waits_at = nullptr;
        thread.open_copies.clear();
        thread.copy_groups.clear();
        thread.stores = {};
        thread.products = {};
        thread.arrived_at_cluster = false;
        thread.looks = false;
        thread.looked_at = 0;
        thread.fiber.start(&Block::enter, &thread);
        Warp& warp = warps_[thread.warp()];
        warp.lanes |= 1u << thread.lane();
        warp.ready |= 1u << thread.lane();
    }
    // How often another warp is preferred: a warp that runs far ahead of the others finds other
    // faults than warps that take turns.
    constexpr std::array paces = {4u, 64u, 1u << 20};
    shuffle_once_in_ = paces[random_.below(paces.size())];
    std::iota(turns_.begin(), turns_.end(), 0u);
    shuffle_warps();
}

// The preferred warp is the one whose bit in ready_warps_ is lowest.
void Block::shuffle_warps() {
    const auto count = static_cast<unsigned>(warps_.size());
    for (unsigned i = count; i > 1; --i)
        std::swap(turns_[i - 1], turns_[random_.below(i)]);
    ready_warps_ = 0;
    for (unsigned turn = 0; turn < count; ++turn) {
        Warp& warp = warps_[turns_[turn]];
        warp.turn = turn;
        if (warp.ready != 0) ready_warps_ |= 1u << turn;
    }
}

Thread& Block::next() {
    if (random_.once_in(shuffle_once_in_)) shuffle_warps();
    const auto turn = static_cast<unsigned>(std::countr_zero(ready_warps_));
    Warp& warp = warps_[turns_[turn]];
    const unsigned start = random_.below(kLanes);
    const auto ahead =
        static_cast<unsigned>(std::countr_zero(std::rotr(warp.ready, static_cast<int>(start))));
    const unsigned lane = (start + ahead) % kLanes;
    warp.ready &= ~(1u << lane);
    if (warp.ready == 0) ready_warps_ &= ~(1u << turn);
    return thread_at(turns_[turn], lane);
}

Block::State Block::run(unsigned turns) {
    sleeps_ = false;
    for (; turns > 0 && running_ > 0 && !sleeps_; --turns) {
        if (ready_warps_ == 0) return State::stuck;
        cluster_->tick();
        Thread& thread = next();
        current_thread = &thread;
        builtins = &thread;
        thread.fiber.resume();
        current_thread = nullptr;
        builtins = nullptr;
        if (faulted_) throw Fault(fault_);
    }
    if (running_ > 0) return sleeps_ ? State::sleeps : State::runs;
    if (!arena_.end_untouched()) {
        throw Fault(report(fmt::format("something was written past the {} bytes of shared memory",
                                       grid_->shared_bytes)));
    }
    if (cluster_->copies().serves(*this) || counting_.leave_copies()) {
        throw Fault(report("it ends, and nobody waited for copies to its shared memory"));
    }
    return State::finished;
}

void Block::enter(void* argument) {
    Thread& thread = *static_cast<Thread*>(argument);
    Block& block = *thread.block;
    block.grid_->call(block.grid_->arguments);
    block.exit(thread);
}

unsigned Block::tensor_cores(unsigned warp) {
    unsigned& number = warps_[warp].tensor_cores;
    if (number == 0) {
        number = cluster_->clocks().add_agent(fmt::format("the tensor cores of warp {}", warp));
    }
    return number;
}

void Block::exit(Thread& thread) {
    const Warp& warp = warps_[thread.warp()];
    for (const Group& group : warp.groups) {
        if ((group.mask >> thread.lane() & 1) != 0) {
            stop(thread, fmt::format("exits while lanes of its warp wait for it at {}", group.kind),
                 {});
        }
    }
    if (!barriers_[0].arrived.empty()) {
        stop(thread,
             fmt::format("exits while threads of its block wait for it at {}", barriers_[0].kind),
             {});
    }
    std::size_t copies = thread.open_copies.size();
    for (const auto& group : thread.copy_groups)
        copies += group.size();
    if (copies != 0) {
        stop(thread, fmt::format("exits with {} asynchronous copies not waited for", copies), {});
    }
    if (thread.stores.open != 0 || thread.stores.groups_read != thread.stores.groups) {
        stop(thread, "exits while the copy engine may still read what it was told to store", {});
    }
    if (!thread.products.accumulators.empty()) {
        stop(thread, "exits without having waited for products of its warpgroup", {});
    }
    if (!thread.waited_for_grid) {
        stop(thread,
             "exits without having waited for the grid before, so that the next one might begin "
             "before that has ended",
             {});
    }
    cluster_->exited(thread);
    thread.exited = true;
    warps_[thread.warp()].exited |= 1u << thread.lane();
    --running_;
    thread.fiber.suspend();
}

void Block::make_ready(Thread& thread) {
    thread.waits_at = nullptr;
    Warp& warp = warps_[thread.warp()];
    warp.ready |= 1u << thread.lane();
    ready_warps_ |= 1u << warp.turn;
}

void Block::suspend_ready(Thread& thread) {
    make_ready(thread);
    thread.fiber.suspend();
}

void Block::suspend_block(Thread& thread) {
    sleeps_ = true;
    suspend_ready(thread);
}

void Block::wait(Thread& thread, const char* kind, Where where) {
    thread.waits_at = kind;
    thread.waits_where = where;
    thread.fiber.suspend();
}

void Block::stop(Thread& thread, std::string&& what, Where where) {
    {
        const std::string text = std::move(what);
        const std::string place =
            where.line != 0 ? fmt::format(" at {}:{}", where.name(), where.line) : std::string();
        fault_ = report(fmt::format("thread {}{} {}", thread.number, place, text));
    }
    faulted_ = true;
    for (;;)
        thread.fiber.suspend();
}

void Block::access(Thread& thread, const void* address, std::size_t bytes, bool write,
                   const void* place) {
    if (!arena_.contains(address, bytes)) {
        thread.block->stop(
            thread,
            fmt::format("{} {} bytes at offset {} of shared memory, which has {} bytes, at {}",
                        write ? "writes" : "reads", bytes,
                        static_cast<std::ptrdiff_t>(arena_.offset(address)), arena_.bytes(),
                        place_of_code(place)),
            {});
    }
    const std::size_t offset = arena_.offset(address);
    if (counting_.touch(offset, bytes)) {
        thread.block->stop(
            thread,
            fmt::format("{} {} bytes at offset {} of shared memory, where a barrier is, at {}",
                        write ? "writes" : "reads", bytes, offset, place_of_code(place)),
            {});
    }
    if (arena_.in_flight(offset, bytes)) {
        thread.block->stop(
            thread,
            fmt::format("{} {} bytes at offset {} of shared memory, on which an asynchronous copy "
                        "has not landed, at {}",
                        write ? "writes" : "reads", bytes, offset, place_of_code(place)),
            {});
    }
    if constexpr (kInstrumented) {
        std::string wrong = write ? races_.write(thread.id, offset, bytes, place)
                                  : races_.read(thread.id, offset, bytes, place);
        if (!wrong.empty()) thread.block->stop(thread, std::move(wrong), {});
    }
}

void Block::atomic_access(Thread& thread, const void* address, std::size_t bytes, Where where) {
    if (!arena_.contains(address, bytes)) {
        thread.block->stop(
            thread,
            fmt::format("does an atomic at offset {} of shared memory, which has {} bytes",
                        static_cast<std::ptrdiff_t>(arena_.offset(address)), arena_.bytes()),
            where);
    }
    if constexpr (kInstrumented) races_.atomic(thread.id, arena_.offset(address), bytes);
}

void Block::landed(Thread& thread, std::size_t offset, std::size_t bytes) {
    if constexpr (kInstrumented) {
        std::string wrong = races_.write(thread.id, offset, bytes, nullptr);
        if (!wrong.empty()) stop(thread, std::move(wrong), {});
    }
}

std::string Block::report(const std::string& what) const {
    return fmt::format("{}, block ({}, {}, {}): {}\n{}", grid_->kernel, index_.x, index_.y,
                       index_.z, what, who_waits_where());
}

std::string Block::what_is_needed(const Thread& waiting) const {
    if (waiting.waits_mask != 0) return fmt::format("lanes {:#010x}", waiting.waits_mask);
    if (waiting.waits_for != 0) return fmt::format("{} threads", waiting.waits_for);
    const CountingBarrier* barrier = counting_.find(waiting.waits_barrier);
    if (barrier == nullptr) return "registers";
    return fmt::format("phase {} of the barrier at offset {}, which lacks {}", waiting.waits_phase,
                       waiting.waits_barrier, barrier->lacks());
}

// One line a place: how many threads wait there, which, and for how many.
std::string Block::who_waits_where() const {
    std::string text;
    std::vector<bool> told(thread_count_);
    const auto ranges = [&](auto&& belongs) {
        std::string list;
        unsigned count = 0;
        for (unsigned first = 0; first < thread_count_; ++first) {
            if (told[first] || !belongs(*threads_[first])) continue;
            unsigned last = first;
            while (last + 1 < thread_count_ && !told[last + 1] && belongs(*threads_[last + 1]))
                ++last;
            list += fmt::format(
                "{}{}", list.empty() ? "" : ", ",
                first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
            for (unsigned number = first; number <= last; ++number)
                told[number] = true;
            count += last - first + 1;
            first = last;
        }
        return std::pair(count, list);
    };
    for (unsigned number = 0; number < thread_count_; ++number) {
        const Thread& waiting = *threads_[number];
        if (told[number] || waiting.waits_at == nullptr) continue;
        const auto [count, list] = ranges([&](const Thread& other) {
            return other.waits_at == waiting.waits_at && other.waits_where == waiting.waits_where &&
                   other.waits_for == waiting.waits_for && other.waits_mask == waiting.waits_mask &&
                   (waiting.waits_for != 0 || waiting.waits_mask != 0 ||
                    (other.waits_barrier == waiting.waits_barrier &&
                     other.waits_phase == waiting.waits_phase));
        });
        text += fmt::format("  {} wait at {} ({}:{}) for {}: {}\n", count, waiting.waits_at,
                            waiting.waits_where.name(), waiting.waits_where.line,
                            what_is_needed(waiting), list);
    }
    const auto [exited, list] = ranges([](const Thread& thread) { return thread.exited; });
    if (exited != 0) text += fmt::format("  {} have exited: {}\n", exited, list);
    const auto [others, rest] = ranges([](const Thread&) { return true; });
    if (others != 0) text += fmt::format("  {} run: {}\n", others, rest);
    return text;
}

}  // namespace jitney::emulator
