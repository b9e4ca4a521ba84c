#include "tests/emulator/kernels/split_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

namespace jitney::emulator {

SplitMemory::SplitMemory(const policy::AttentionWorkspace& workspace)
    : splits_(workspace.total() != 0),
      statistics_at_(workspace.partial_out_bytes),
      scratch_(workspace.scratch_bytes(), "the workspace"),
      counters_(workspace.arrived_bytes, "the counters") {
    std::memset(counters_.data(), 0, counters_.bytes());
}

void SplitMemory::check() const {
    CHECK(std::all_of(counters_.data(), counters_.data() + counters_.bytes(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace jitney::emulator
