#include "tests/emulator/machine/device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tests/emulator/machine/block.hpp"
#include "tests/emulator/machine/fault.hpp"
#include "tests/emulator/machine/memory.hpp"

namespace jitney::emulator {
namespace {

// One thread in so many gives way at a yield point.
constexpr unsigned kYieldOnceIn = 6;
// And one in so many gives way to other blocks where that is possible.
constexpr unsigned kYieldBlockOnceIn = 4;

}  // namespace

void fault(std::string&& what, Where where) {
    if (current_thread == nullptr) throw Fault("device code runs outside of a launch: " + what);
    current_thread->block->stop(*current_thread, std::move(what), where);
}

void yield_point() {
    Thread& thread = *current_thread;
    if (thread.block->random().once_in(kYieldOnceIn)) thread.block->suspend_ready(thread);
}

void yield_block_point() {
    Thread& thread = *current_thread;
    if (thread.block->random().once_in(kYieldBlockOnceIn)) thread.block->suspend_block(thread);
}

char* shared_memory() {
    return current_thread->block->arena().begin();
}

unsigned shared_address(const void* pointer, Where where) {
    const Arena& arena = current_thread->block->arena();
    if (!arena.contains(pointer, 0)) {
        fault(fmt::format("takes the shared address of something that lies {} bytes from the start "
                          "of shared memory, which has {} bytes",
                          static_cast<std::ptrdiff_t>(arena.offset(pointer)), arena.bytes()),
              where);
    }
    return Arena::first_address + static_cast<unsigned>(arena.offset(pointer));
}

namespace {

char* touch_shared(unsigned address, unsigned bytes, unsigned alignment, const char* kind,
                   bool write, const void* place, Where where) {
    Thread& thread = *current_thread;
    const Arena& arena = thread.block->arena();
    const std::size_t offset = std::size_t{address} - Arena::first_address;
    if (address % alignment != 0 || offset > arena.bytes() || bytes > arena.bytes() - offset) {
        fault(fmt::format("{} {} {} bytes at offset {} of shared memory, which has {} bytes and "
                          "must be {} at multiples of {}",
                          kind, write ? "writes" : "reads", bytes,
                          static_cast<std::ptrdiff_t>(offset), arena.bytes(),
                          write ? "written" : "read", alignment),
              where);
    }
    char* pointer = arena.begin() + offset;
    thread.block->access(thread, pointer, bytes, write, place);
    return pointer;
}

}  // namespace

const void* read_shared(unsigned address, unsigned bytes, unsigned alignment, const char* kind,
                        const void* place, Where where) {
    return touch_shared(address, bytes, alignment, kind, false, place, where);
}

void* write_shared(unsigned address, unsigned bytes, unsigned alignment, const char* kind,
                   const void* place, Where where) {
    return touch_shared(address, bytes, alignment, kind, true, place, where);
}

void async_copy(unsigned to, const void* from, unsigned bytes, unsigned from_bytes, Where where) {
    yield_point();
    Thread& thread = *current_thread;
    Arena& arena = thread.block->arena();
    const std::size_t offset = std::size_t{to} - Arena::first_address;
    if (to % bytes != 0 || offset > arena.bytes() || bytes > arena.bytes() - offset) {
        fault(fmt::format("copies {} bytes to offset {} of shared memory, which has {} bytes and "
                          "must be written at multiples of {}",
                          bytes, static_cast<std::ptrdiff_t>(offset), arena.bytes(), bytes),
              where);
    }
    if (from_bytes > bytes) {
        fault(fmt::format("copies {} bytes where only {} are written", from_bytes, bytes), where);
    }
    // Where nothing is read, too.
    if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) {
        fault(fmt::format("copies {} bytes from an address that is not a multiple of {}", bytes,
                          bytes),
              where);
    }
    if (from_bytes != 0) {
        if (std::string wrong = objection(from, from_bytes, false); !wrong.empty()) {
            fault(std::move(wrong), where);
        }
        if (std::string wrong = too_early(from); !wrong.empty()) fault(std::move(wrong), where);
        // A look at the source now, so that a wrong address is seen here and not at the wait.
        const auto* source = static_cast<const volatile char*>(from);
        static_cast<void>(source[0]);
        static_cast<void>(source[from_bytes - 1]);
    }
    thread.block->access(thread, arena.begin() + offset, bytes, true, __builtin_return_address(0));
    arena.set_in_flight(offset, bytes);
    thread.open_copies.push_back({offset, from, bytes, from_bytes});
}

void async_commit() {
    Thread& thread = *current_thread;
    thread.copy_groups.push_back(std::move(thread.open_copies));
    thread.open_copies.clear();
}

void async_wait(unsigned pending) {
    Thread& thread = *current_thread;
    Arena& arena = thread.block->arena();
    while (thread.copy_groups.size() > pending) {
        for (const AsyncCopy& copy : thread.copy_groups.front()) {
            arena.set_landed(copy.to, copy.bytes);
            thread.block->landed(thread, copy.to, copy.bytes);
            char* to = arena.begin() + copy.to;
            std::memset(to, 0, copy.bytes);
            if (copy.from_bytes != 0) std::memcpy(to, copy.from, copy.from_bytes);
        }
        thread.copy_groups.pop_front();
    }
    yield_point();
}

void wait_for_previous_grid() {
    current_thread->waited_for_grid = true;
}

std::string too_early(const void* address) {
    if (current_thread->waited_for_grid || !in_device_memory(address)) return {};
    return "touches global memory before it has waited for the grid before";
}

void check_alignment(const void* address, std::size_t bytes, std::size_t alignment,
                     const char* does, const void* place) {
    if (reinterpret_cast<std::uintptr_t>(address) % alignment == 0) return;
    if (current_thread == nullptr) return;
    const Arena& arena = current_thread->block->arena();
    const char* where = "shared memory";
    auto offset = static_cast<std::ptrdiff_t>(arena.offset(address));
    if (!arena.near(address)) {
        const Buffer* buffer = in_device_memory(address) ? owner_of(address) : nullptr;
        if (buffer == nullptr) return;
        where = buffer->name().c_str();
        offset = static_cast<const std::byte*>(address) - buffer->data();
    }
    std::string wrong =
        fmt::format("{} {} bytes at offset {} of {}, which is no multiple of {}, at {}", does,
                    bytes, offset, where, alignment, place_of_code(place));
    fault(std::move(wrong), {});
}

void expect_aligned(const void* address, std::size_t bytes) {
    check_alignment(address, bytes, bytes, "accesses", __builtin_return_address(0));
}

void before_atomic(const void* address, std::size_t bytes, Where where) {
    yield_block_point();
    Thread& thread = *current_thread;
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
        fault(fmt::format("does an atomic of {} bytes at an address that is not a multiple of it",
                          bytes),
              where);
    }
    if (thread.block->arena().near(address)) {
        thread.block->atomic_access(thread, address, bytes, where);
    } else if (std::string wrong = objection(address, bytes, true); !wrong.empty()) {
        fault(std::move(wrong), where);
    } else if (std::string early = too_early(address); !early.empty()) {
        fault(std::move(early), where);
    }
}

}  // namespace jitney::emulator
