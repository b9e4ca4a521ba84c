// Keeps a layer under its size, least recently used first, and clears away what stopped processes
// left behind. Safe beside readers, writers and other sweeps: a file that changed since it was
// seen is left alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/layer.hpp"
#include "cache/scan.hpp"

namespace jitney::cache {

// An entry's modification time is the time of its last use, to within this.
inline constexpr std::int64_t kUseResolution = 3600;

struct SweepResult {
    std::uint64_t entries = 0;  // that remain
    std::uint64_t entry_bytes = 0;
    std::uint64_t temps = 0;  // that remain: somebody writes them, or they can't be removed
    std::uint64_t temp_bytes = 0;
    std::uint64_t removed_entries = 0;
    std::uint64_t removed_bytes = 0;
    std::uint64_t removed_temps = 0;
    std::uint64_t removed_temp_bytes = 0;
    std::vector<BadEntry> stuck;  // what takes an entry's place, is none, and can't be removed
    Gaps gaps;
};

// When the entries and what is being written exceed `limit` bytes, removes the oldest until they
// are within `target`. `now` is by the clock of the file system; an entry dated beyond it (and
// beyond what clocks differ by) counts as the oldest, since its date tells nothing.
SweepResult sweep(Layer& layer, std::uint64_t limit, std::uint64_t target, std::int64_t now);

// Marks an entry as just used.
void mark_used(Layer& layer, const ReadFile& file);

}  // namespace jitney::cache
