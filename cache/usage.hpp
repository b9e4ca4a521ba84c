// How many bytes the private directory holds, as all processes that write there count together: a
// file in it has the sum, and whoever reads or changes that has the file's lock. Bytes are counted
// before they are written, so that writers, however many, pass the size cap by one entry each at
// most: what they had reserved and not begun to write when another counted.
//
//     <root>/.usage := "jitney-usage 1 " bytes " " reservations "\n"      (both in decimal)
//
// The sum is replaced by a count of what is there when it reaches the cap, after every so many
// reservations (since entries vanish, and older versions write without it), and when the file is
// absent or no such text.
#pragma once

#include <cstdint>
#include <string>

#include "cache/layer.hpp"
#include "cache/sweep.hpp"

namespace jitney::cache {

inline constexpr std::string_view kUsageName = ".usage";

// Counts bytes that are about to be written, after removing entries where they would not fit.
// Returns why there is no room for them; empty where there is. Where the directory has no locks or
// can't be written it counts what is there each time.
std::string reserve(Layer& layer, std::uint64_t bytes, std::uint64_t max_bytes);

// Removes what is over `max_bytes`, the least recently used first, and notes what is left.
SweepResult prune(Layer& layer, std::uint64_t max_bytes);

}  // namespace jitney::cache
