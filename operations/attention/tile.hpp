// The tile of each attention kernel: which rows and keys a block takes at a time.
#pragma once

#include <cstdint>

#include "core/arithmetic.hpp"
#include "operations/attention/choose.hpp"

namespace jitney::policy {

struct AttentionTile {
    int m = 0;             // packed query rows a block
    int n = 0;             // keys a tile in shared memory
    int stages = 0;        // of the rings of attn_decode_mma and attn_prefill_wgmma; 0 elsewhere
    int q_stages = 0;      // of the ring of tiles of Q of attn_prefill_wgmma
    int keys_a_step = 0;   // keys that a block goes through at a time
    int shared_bytes = 0;  // dynamic, a block: 0 until its specialization is known
};

AttentionTile attention_tile(KernelId kernel, const AttentionProblem& problem,
                             const DeviceFacts& facts);

// How many query heads of a KV head share a tile of that kernel. attn_prefill_wgmma copies boxes of
// 64 rows, so that there it is a divisor of 64.
int heads_taken_together(KernelId kernel, const AttentionProblem& problem);

// How many heads attn_prefill_wgmma takes in turn, so that their K and V stay in the L2.
int wgmma_heads_at_a_time(const AttentionProblem& problem);

// Query rows that share a KV head.
inline std::int64_t rows_a_head(const AttentionProblem& problem) {
    return static_cast<std::int64_t>(problem.q_len) * problem.group();
}

// What has tiles of its own: KV heads of all requests; packed requests share their tiles.
inline std::int64_t heads(const AttentionProblem& problem) {
    return static_cast<std::int64_t>(problem.packed ? 1 : problem.batch) * problem.kv_heads;
}

}  // namespace jitney::policy
