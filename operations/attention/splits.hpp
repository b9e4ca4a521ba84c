// Split-KV: among how many blocks the keys of each tile of query rows are divided.
#pragma once

#include "operations/attention/tile.hpp"

namespace jitney::policy {

struct Splits {
    int blocks = 1;   // a tile
    int cluster = 1;  // blocks of a cluster: all of a tile, or one
};

// At least one block, and never more than leave every split a step of keys.
Splits decode_splits(KernelId kernel, const AttentionProblem& problem, const AttentionTile& tile,
                     std::int64_t tiles, const DeviceFacts& facts);

// The parts of a batch-invariant decode: how many a request's keys have is computed on the device,
// from its own length alone.
struct FixedParts {
    int keys = 0;    // a part at least
    int most = 0;    // parts at most: longer requests have longer ones
    int blocks = 1;  // a tile, as many as the longest request has parts
};
FixedParts fixed_parts(const AttentionProblem& problem, const AttentionTile& tile);

}  // namespace jitney::policy
