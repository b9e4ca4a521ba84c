#include "tests/emulator/machine/async.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/cluster_size.hpp"
#include "tests/emulator/machine/fault.hpp"
#include "tests/emulator/machine/instrumented.hpp"
#include "tests/emulator/machine/memory.hpp"

namespace jitney::emulator {
namespace {

// One phase that is not over in so many is looked at once and not waited for.
constexpr unsigned kLookOnceIn = 8;

// The upper bits of an address name the block, plus one; 0: the thread's own.
constexpr unsigned kRankShift = 24;
constexpr unsigned kOffsetMask = (1u << kRankShift) - 1;

struct Place {
    Block* block;
    std::size_t offset;
};

// `bytes` of shared memory that begin at a multiple of `alignment`; `does` is for reports.
Place place_of(unsigned address, std::size_t bytes, unsigned alignment, const char* does,
               Where where) {
    Block& own = *current_thread->block;
    const unsigned rank = address >> kRankShift;
    Block& block = rank == 0 ? own : own.cluster().block(rank - 1);
    const std::size_t offset = std::size_t{address & kOffsetMask} - Arena::first_address;
    const Arena& arena = block.arena();
    if (address % alignment != 0 || offset > arena.bytes() || bytes > arena.bytes() - offset) {
        fault(
            fmt::format("{} {} bytes at offset {} of shared memory, which has {} bytes, and takes "
                        "multiples of {}",
                        does, bytes, static_cast<std::ptrdiff_t>(offset), arena.bytes(), alignment),
            where);
    }
    return {&block, offset};
}

Place barrier_place(unsigned address, Where where) {
    return place_of(address, CountingBarriers::kBytes, CountingBarriers::kBytes,
                    "takes for a barrier", where);
}

Place barrier_of_phases(unsigned address, unsigned parity, Where where) {
    yield_point();
    const Place place = barrier_place(address, where);
    if (place.block != current_thread->block) fault("waits at another block's barrier", where);
    if (parity > 1) fault(fmt::format("waits for a phase of parity {}", parity), where);
    return place;
}

void check_bringing(const Copy& copy, Where where) {
    std::string wrong =
        too_early(copy.map.rank == 0 ? static_cast<const void*>(copy.global)
                                     : reinterpret_cast<const void*>(copy.map.address));
    copy.for_each_run([&](const std::byte* from, unsigned, unsigned bytes) {
        if (wrong.empty()) wrong = objection_to_bringing(from, bytes);
    });
    if (!wrong.empty()) fault(std::move(wrong), where);
}

// Sends a copy that has its source on the way to `to`, and has `barrier` count it.
void load(Copy copy, unsigned to, unsigned barrier, unsigned blocks, unsigned alignment,
          Where where, const void* place) {
    yield_point();
    Thread& thread = *current_thread;
    const Place target = place_of(to, copy.bytes, alignment, "copies", where);
    const Place counter = barrier_place(barrier, where);
    if (target.block != counter.block) {
        fault("copies to the memory of one block, and has a barrier of another count it", where);
    }
    if (target.block->is_finished()) fault("copies to the memory of a block that has ended", where);
    if (copy.stored.empty()) check_bringing(copy, where);
    copy.offset = target.offset;
    copy.barrier = counter.offset;
    copy.place = place;
    Cluster& cluster = thread.block->cluster();
    if (blocks >> cluster.size() != 0) {
        fault(fmt::format("copies to blocks {:#06x} of a cluster of {}", blocks, cluster.size()),
              where);
    }
    for (unsigned rank = 0; rank < cluster.size(); ++rank) {
        Block& block = cluster.block(rank);
        if (blocks == 0 ? &block != target.block : (blocks >> rank & 1) == 0) continue;
        copy.block = &block;
        block.expect(thread, copy, where);
        cluster.copies().add(copy);
    }
}

// Reads shared memory, for a copy that has its target.
void store(Copy copy, unsigned from, unsigned alignment, Where where, const void* place) {
    yield_point();
    Thread& thread = *current_thread;
    Block& block = *thread.block;
    const Place source = place_of(from, copy.bytes, alignment, "copies", where);
    if (source.block != &block) fault("stores from the shared memory of another block", where);
    std::string wrong;
    copy.for_each_run([&](const std::byte* to, unsigned, unsigned bytes) {
        if (wrong.empty()) wrong = objection(to, bytes, true);
        if (wrong.empty()) wrong = too_early(to);
    });
    if (!wrong.empty()) fault(std::move(wrong), where);
    if (block.arena().in_flight(source.offset, copy.bytes)) {
        fault(
            fmt::format("stores {} bytes from offset {} of shared memory, on which a copy has not "
                        "landed",
                        copy.bytes, source.offset),
            where);
    }
    Clocks& clocks = block.cluster().clocks();
    if (thread.stores.agent == 0) {
        thread.stores.agent =
            clocks.add_agent(fmt::format("the copy engine for thread {}", thread.number));
    }
    if constexpr (kInstrumented) {
        wrong = block.races().agent_read(thread.id, thread.stores.agent, source.offset, copy.bytes,
                                         place);
        if (!wrong.empty()) fault(std::move(wrong), where);
    }
    copy.store = true;
    copy.block = &block;
    copy.offset = source.offset;
    copy.place = place;
    copy.thread = thread.id;
    copy.group = thread.stores.groups + 1;
    ++thread.stores.open;
    copy.stored.resize(copy.bytes);
    for (unsigned at = 0; at < copy.bytes; at += 16) {
        std::memcpy(copy.stored.data() + at,
                    block.arena().begin() + swizzled(from + at, copy.map.swizzle_bytes) -
                        Arena::first_address,
                    16);
    }
    block.cluster().copies().add(std::move(copy));
}

Copy copy_of_box(const TensorMapBits& bits, std::span<const int> corner, Where where) {
    Copy copy;
    std::string wrong = read_tensor_map(bits, static_cast<unsigned>(corner.size()), copy.map);
    if (!wrong.empty()) fault(std::move(wrong), where);
    // A GPU stops such a kernel as for an illegal instruction.
    if (corner.front() * copy.map.element_bytes % 16 != 0) {
        fault(fmt::format("copies a box that begins at element {} of its rows, of {} bytes each: "
                          "boxes begin at multiples of 16 bytes",
                          corner.front(), copy.map.element_bytes),
              where);
    }
    std::copy(corner.begin(), corner.end(), copy.corner.begin());
    copy.bytes = copy.map.box_bytes();
    return copy;
}

// Boxes begin where the pattern of their swizzle does.
unsigned alignment_of(const TensorMap& map) {
    return map.swizzle_bytes == 0 ? 128 : 8u * map.swizzle_bytes;
}

Copy copy_of_run(const void* global, unsigned bytes, Where where) {
    if (reinterpret_cast<std::uintptr_t>(global) % 16 != 0 || bytes % 16 != 0 || bytes == 0) {
        fault(fmt::format("copies {} bytes at once to or from {} of global memory, where both are "
                          "multiples of 16",
                          bytes, global),
              where);
    }
    Copy copy;
    copy.bytes = bytes;
    copy.global = static_cast<const std::byte*>(global);
    return copy;
}

}  // namespace

void make_barrier(unsigned address, unsigned arrivals, Where where) {
    const Place place = barrier_place(address, where);
    Thread& thread = *current_thread;
    if (place.block != thread.block) fault("makes a barrier in another block's memory", where);
    place.block->make_barrier(thread, place.offset, arrivals, where);
}

void arrive_at_barrier(unsigned address, unsigned bytes, Where where) {
    yield_point();
    const Place place = barrier_place(address, where);
    place.block->arrive(*current_thread, place.offset, bytes, where);
}

bool barrier_ended(unsigned address, unsigned parity, Where where) {
    const Place place = barrier_of_phases(address, parity, where);
    Thread& thread = *current_thread;
    if (place.block->phase_ended(thread, place.offset, parity, where)) return true;
    if (place.block->random().once_in(kLookOnceIn)) return false;
    thread.looks = true;
    place.block->wait_for_phase(thread, place.offset, parity, where);
    thread.looks = false;
    return place.block->phase_ended(thread, place.offset, parity, where);
}

void barrier_wait(unsigned address, unsigned parity, Where where) {
    const Place place = barrier_of_phases(address, parity, where);
    while (!place.block->phase_ended(*current_thread, place.offset, parity, where))
        place.block->wait_for_phase(*current_thread, place.offset, parity, where);
}

void fence_for_agents() {
    Thread& thread = *current_thread;
    thread.block->show_barriers(thread);
    thread.block->cluster().clocks().fence(thread.id);
    yield_point();
}

void fence_made_barriers() {
    Thread& thread = *current_thread;
    thread.block->show_barriers(thread);
    thread.block->cluster().clocks().advance(thread.id);
}

unsigned block_in_cluster() {
    return current_thread->block->rank();
}

unsigned blocks_in_cluster() {
    return current_thread->block->cluster().size();
}

unsigned address_in_block(unsigned address, unsigned block, Where where) {
    const unsigned blocks = current_thread->block->cluster().size();
    if (block >= blocks || address >> kRankShift != 0) {
        fault(fmt::format("asks for address {:#x} in block {} of a cluster of {}", address, block,
                          blocks),
              where);
    }
    return address | (block + 1) << kRankShift;
}

void store_in_cluster(unsigned address, const void* from, unsigned bytes, Where where) {
    yield_point();
    const Place place = place_of(address, bytes, bytes, "stores", where);
    if (place.block->is_finished()) fault("stores to the memory of a block that has ended", where);
    char* const to = place.block->arena().begin() + place.offset;
    place.block->access(*current_thread, to, bytes, true, __builtin_return_address(0));
    std::memcpy(to, from, bytes);
}

void send_in_cluster(unsigned address, unsigned barrier, const void* from, unsigned bytes,
                     Where where) {
    const auto* const begin = static_cast<const std::byte*>(from);
    Copy copy;
    copy.bytes = bytes;
    copy.stored.assign(begin, begin + bytes);
    load(std::move(copy), address, barrier, 0, bytes, where, __builtin_return_address(0));
}

void cluster_arrive(Where where) {
    Thread& thread = *current_thread;
    thread.block->cluster().arrive(thread, where);
    yield_point();
}

void cluster_wait(Where where) {
    Thread& thread = *current_thread;
    thread.block->cluster().wait(thread, where);
}

void load_in_cluster(unsigned address, void* to, unsigned bytes, Where where) {
    yield_point();
    const Place place = place_of(address, bytes, bytes, "loads", where);
    if (place.block->is_finished()) fault("loads from the memory of a block that has ended", where);
    const char* const from = place.block->arena().begin() + place.offset;
    place.block->access(*current_thread, from, bytes, false, __builtin_return_address(0));
    std::memcpy(to, from, bytes);
}

void check_tensor_map(const TensorMapBits& bits, Where where) {
    TensorMap map;
    std::string wrong = read_tensor_map(bits, 0, map);
    if (!wrong.empty()) fault(std::move(wrong), where);
}

void tensor_load(unsigned to, const TensorMapBits& bits, unsigned barrier, unsigned blocks,
                 std::span<const int> corner, Where where) {
    const void* const place = __builtin_return_address(0);
    Copy copy = copy_of_box(bits, corner, where);
    const unsigned alignment = alignment_of(copy.map);
    load(std::move(copy), to, barrier, blocks, alignment, where, place);
}

void tensor_store(const TensorMapBits& bits, unsigned from, std::span<const int> corner,
                  Where where) {
    const void* const place = __builtin_return_address(0);
    Copy copy = copy_of_box(bits, corner, where);
    const unsigned alignment = alignment_of(copy.map);
    store(std::move(copy), from, alignment, where, place);
}

void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned barrier, Where where) {
    const void* const place = __builtin_return_address(0);
    load(copy_of_run(from, bytes, where), to, barrier, 0, 16, where, place);
}

void bulk_store(void* to, unsigned from, unsigned bytes, Where where) {
    const void* const place = __builtin_return_address(0);
    store(copy_of_run(to, bytes, where), from, 16, where, place);
}

void bulk_store_commit() {
    Thread& thread = *current_thread;
    BulkStores& stores = thread.stores;
    if (stores.agent == 0) {
        stores.moments.push_back(0);
    } else {
        Clocks& clocks = thread.block->cluster().clocks();
        stores.moments.push_back(moment_of(clocks.now(stores.agent)));
        clocks.advance(stores.agent);
    }
    ++stores.groups;
    stores.open = 0;
    yield_point();
}

void bulk_store_wait(unsigned pending, bool until_written) {
    Thread& thread = *current_thread;
    BulkStores& stores = thread.stores;
    Cluster& cluster = thread.block->cluster();
    if (stores.groups > pending) {
        const unsigned done = stores.groups - pending;
        stores.groups_read = std::max(stores.groups_read, done);
        if (const Moment moment = stores.moments[done - 1]; moment != 0) {
            cluster.clocks().learn(thread.id, stores.agent, moment);
        }
        if (until_written) cluster.copies().land_stores(thread.id, done);
    }
    yield_point();
}

void share_registers(unsigned count, bool takes, Where where) {
    Thread& thread = *current_thread;
    Block& block = *thread.block;
    const char* const kind = takes ? "setmaxnreg.inc" : "setmaxnreg.dec";
    warp_collective({.kind = kind, .same_place = true}, 0xffffffffu, nullptr, where);
    RegisterPool& registers = block.registers();
    // One lane speaks for its warp.
    if (thread.lane() == 0) {
        if (std::string wrong = registers.ask(thread.warp(), count, takes); !wrong.empty()) {
            fault(std::move(wrong), where);
        }
        if (takes) {
            block.take_registers(thread, count, where);
        } else {
            block.give_registers(thread, count);
        }
    }
    warp_collective({.kind = kind, .same_place = true}, 0xffffffffu, nullptr, where);
}

}  // namespace jitney::emulator
