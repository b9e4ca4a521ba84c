// What a thread can ask of the machine: the twins of kernel_sources/common are written on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/emulator/machine/where.hpp"

namespace jitney::emulator {

struct Index {
    unsigned x = 0;
    unsigned y = 0;
    unsigned z = 0;
};

struct Builtins {
    Index thread_index;
    Index block_index;
    Index block_size;
    Index grid_size;
};

extern thread_local constinit const Builtins* builtins;

// Ends the launch with a report about this thread. Does not come back.
[[noreturn]] void fault(std::string&& what, Where where = Where::here());

// A place where other threads may go first; and one where other blocks may.
void yield_point();
void yield_block_point();

// Shared memory: its first byte; the 32-bit address of a byte; and the bytes at an address that
// this thread is about to read or write, by code at `place` (a fault where they are not shared
// memory, or not aligned).
char* shared_memory();
unsigned shared_address(const void* pointer, Where where);
const void* read_shared(unsigned address, unsigned bytes, unsigned alignment, const char* kind,
                        const void* place, Where where);
void* write_shared(unsigned address, unsigned bytes, unsigned alignment, const char* kind,
                   const void* place, Where where);

// Work that one thread does for all once every one of them has come. The operands are what the
// threads brought: by lane, or by number in the block.
using Act = void (*)(void* const* operands, unsigned count_or_mask);

// The lanes of `mask`. orders_memory: whether what one of them wrote before can be read by the
// others after. same_place: whether all must have come by the same line of code.
struct WarpCollective {
    const char* kind;
    Act act = nullptr;
    bool orders_memory = false;
    bool same_place = false;
};
void warp_collective(const WarpCollective& collective, unsigned mask, void* operand, Where where);

// All threads of the block, at barrier 0; always orders memory.
void block_collective(const char* kind, Act act, void* operand, Where where);

// Barriers 1 to 15, of which `threads` threads take part. An arrival does not wait.
void named_barrier(unsigned barrier, unsigned threads, bool waits, Where where);

// Asynchronous copies to shared memory, each thread's own.
void async_copy(unsigned to, const void* from, unsigned bytes, unsigned from_bytes, Where where);
void async_commit();
void async_wait(unsigned pending);

// Programmatic dependent launch: from here on the thread may touch global memory.
void wait_for_previous_grid();
// Why the thread that runs may not yet, where the address is of a buffer; empty where it may.
std::string too_early(const void* address);

// An access of several bytes at once, by code at `place`: a fault where the address is no multiple
// of `alignment`. What lies neither in a buffer nor in shared memory is of no concern here.
void check_alignment(const void* address, std::size_t bytes, std::size_t alignment,
                     const char* does, const void* place);

// The same of whoever calls this, before an access of `bytes` at once.
void expect_aligned(const void* address, std::size_t bytes);

// Before an atomic access: a check of the address, and a place where other blocks may go first.
void before_atomic(const void* address, std::size_t bytes, Where where);

}  // namespace jitney::emulator
