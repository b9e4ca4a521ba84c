// Keeps a layer under its size, least recently used first, and clears away what stopped processes
// left behind. Safe beside readers, writers and other sweeps: a file that changed since it was
// seen is left alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/layer.hpp"

namespace jitney::cache {

// An entry's modification time is the time of its last use, to within this.
inline constexpr std::int64_t kUseResolution = 3600;
// A temporary file or a lock file older than this has no owner.
inline constexpr std::int64_t kStaleAfter = 3600;

struct SweepResult {
    std::uint64_t entries = 0;  // that remain
    std::uint64_t bytes = 0;
    std::uint64_t removed_entries = 0;
    std::uint64_t removed_bytes = 0;
    std::uint64_t removed_temps = 0;
};

// When the entries exceed `limit` bytes, removes the oldest until they are within `target`;
// `keep` is removed only when it alone is over the limit.
SweepResult sweep(Layer& layer, std::uint64_t limit, std::uint64_t target,
                  const std::optional<EntryName>& keep = std::nullopt);

// Marks an entry as just used.
void mark_used(Layer& layer, const ReadFile& file);

}  // namespace jitney::cache
