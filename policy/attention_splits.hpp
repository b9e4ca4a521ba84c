// Split-KV: among how many blocks the keys of each tile of query rows are divided.
#pragma once

#include "policy/attention_tile.hpp"

namespace jitney::policy {

// At least 1, and never more than leave every split a step of keys.
int attention_splits(const AttentionProblem& problem, const AttentionTile& tile, std::int64_t tiles,
                     const DeviceFacts& facts);

}  // namespace jitney::policy
