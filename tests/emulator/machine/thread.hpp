// One thread of a block, as the scheduler sees it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/emulator/machine/device.hpp"
#include "tests/emulator/machine/fiber.hpp"
#include "tests/emulator/machine/where.hpp"

namespace jitney::emulator {

class Block;

// A copy to shared memory that was issued and has not landed.
struct AsyncCopy {
    std::size_t to = 0;  // offset in shared memory
    const void* from = nullptr;
    unsigned bytes = 0;       // written
    unsigned from_bytes = 0;  // read; zeros fill the rest
};

struct Thread : Builtins {
    Block* block = nullptr;
    unsigned number = 0;  // in the block
    unsigned lane() const { return number % 32; }
    unsigned warp() const { return number / 32; }

    Fiber fiber;
    bool exited = false;
    bool waited_for_grid = true;     // false at first in a programmatic launch
    const char* waits_at = nullptr;  // the collective's name, null while it runs or could
    Where waits_where;
    unsigned waits_mask = 0;  // the lanes that a warp's collective needs, 0 at a barrier
    unsigned waits_for = 0;   // the threads that a barrier needs

    std::vector<AsyncCopy> open_copies;              // issued since the last commit
    std::deque<std::vector<AsyncCopy>> copy_groups;  // committed, oldest first
};

}  // namespace jitney::emulator
