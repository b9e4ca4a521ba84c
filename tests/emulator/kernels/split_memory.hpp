// What the blocks of a split attention leave to each other.
#pragma once

#include "operations/attention/choose.hpp"
#include "tests/emulator/machine/memory.hpp"

namespace jitney::emulator {

class SplitMemory {
  public:
    explicit SplitMemory(const policy::AttentionWorkspace& workspace);

    // One block for both, as the library takes it; null where nothing is split.
    std::byte* scratch() const { return splits_ ? scratch_.data() : nullptr; }
    float* partial_out() const { return splits_ ? scratch_.as<float>() : nullptr; }
    void* partial_statistics() const {
        return splits_ ? scratch_.data() + statistics_at_ : nullptr;
    }
    unsigned* counters() const { return splits_ ? counters_.as<unsigned>() : nullptr; }

    // That the counters are zero again.
    void check() const;

  private:
    bool splits_;
    std::size_t statistics_at_;
    Buffer scratch_;
    Buffer counters_;
};

}  // namespace jitney::emulator
