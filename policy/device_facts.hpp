// The facts about a device that the policy knows: plain numbers, from the driver or, where there is
// no GPU, typical of the arch.
#pragma once

#include <string_view>

#include "core/arch.hpp"

namespace jitney::policy {

struct DeviceFacts {
    Arch arch;
    int sm_count = 0;
    int shared_bytes_per_block = 0;  // the most that a block may opt in to
    int shared_bytes_per_sm = 0;
    int registers_per_sm = 65536;
};

// Whether a grid can begin before the one before it in the stream has ended.
inline bool has_programmatic_launches(const DeviceFacts& facts) noexcept {
    return facts.arch.number >= 90;
}

// A common GPU of that arch (A100 for sm_80, H100/H200 for sm_90a, ...), so that explain and the
// catalogue work for any arch on any machine.
DeviceFacts typical_facts(Arch arch) noexcept;

// The same for the name of an arch, as GPUs look for it. Throws Error (invalid_argument).
DeviceFacts facts_named(std::string_view arch);

}  // namespace jitney::policy
