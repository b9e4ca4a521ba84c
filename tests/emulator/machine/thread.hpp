// One thread of a block, as the scheduler sees it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/emulator/machine/clocks.hpp"
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

// Copies to global memory by the copy engine, in groups.
struct BulkStores {
    unsigned agent = 0;  // 0: it has stored nothing yet
    unsigned open = 0;   // copies since the last commit
    unsigned groups = 0;
    unsigned groups_written = 0;  // that were waited for, and groups_read of which the reads were
    unsigned groups_read = 0;
    std::vector<Moment> moments;  // of each group, when its last copy had read shared memory
};

// What a thread has on the way in the tensor cores of its warpgroup.
struct Products {
    struct Accumulators {
        float* registers = nullptr;
        std::vector<float> values;  // that they will hold
        unsigned group = 0;         // the newest that adds to them
    };
    struct Factor {  // a part of a in registers
        const unsigned* registers = nullptr;
        std::array<unsigned, 4> values{};
        unsigned group = 0;
    };
    bool begun = false;  // since the last commit
    unsigned open = 0;   // products since then
    unsigned groups = 0;
    unsigned groups_done = 0;
    std::vector<Accumulators> accumulators;
    std::vector<Factor> factors;
    std::vector<Moment> moments;  // of each group, when its last product had read shared memory
    Moment newest = 0;            // of the open group
};

struct Thread : Builtins {
    Block* block = nullptr;
    unsigned number = 0;  // in the block
    unsigned id = 0;      // in the cluster, as clocks know it
    unsigned lane() const { return number % 32; }
    unsigned warp() const { return number / 32; }

    Fiber fiber;
    bool exited = false;
    bool waited_for_grid = true;     // false at first in a programmatic launch
    const char* waits_at = nullptr;  // the collective's name, null while it runs or could
    Where waits_where;
    unsigned waits_mask = 0;        // the lanes that a warp's collective needs, 0 at a barrier
    unsigned waits_for = 0;         // the threads that a barrier needs
    std::size_t waits_barrier = 0;  // waits_for is 0: the offset of a barrier that counts
    unsigned waits_phase = 0;       // and the parity of the phase that has to end
    bool looks = false;             // it would go on without that
    std::uint64_t looked_at = 0;    // and did, when so much had happened

    std::vector<AsyncCopy> open_copies;              // issued since the last commit
    std::deque<std::vector<AsyncCopy>> copy_groups;  // committed, oldest first
    BulkStores stores;
    Products products;
    bool arrived_at_cluster = false;  // and has not waited for the others
    unsigned cluster_phase = 0;       // in which it arrived
};

}  // namespace jitney::emulator
