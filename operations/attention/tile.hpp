// The tile of each attention kernel: which rows and keys a block takes at a time, and what memory
// that needs.
#pragma once

#include <cstdint>

#include "core/arithmetic.hpp"
#include "operations/attention/choose.hpp"

namespace jitney::policy {

struct AttentionTile {
    int m = 0;             // packed query rows a block
    int n = 0;             // keys a tile in shared memory
    int stages = 0;        // of the ring of attn_decode_mma; 0 elsewhere
    int keys_a_step = 0;   // keys that a block goes through at a time
    int shared_bytes = 0;  // dynamic, a block
};

AttentionTile attention_tile(KernelId kernel, const AttentionProblem& problem,
                             const DeviceFacts& facts);

// Query rows that share a KV head.
inline std::int64_t rows_a_head(const AttentionProblem& problem) {
    return static_cast<std::int64_t>(problem.q_len) * problem.group();
}

// What has tiles of its own: KV heads of all requests; packed requests share their tiles.
inline std::int64_t heads(const AttentionProblem& problem) {
    return static_cast<std::int64_t>(problem.packed ? 1 : problem.batch) * problem.kv_heads;
}

}  // namespace jitney::policy
