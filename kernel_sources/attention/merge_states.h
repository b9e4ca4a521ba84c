// What attn_merge_states is launched with; shared by host and device.
#pragma once

#include "attention/params.h"

namespace jitney {

// A warp a row.
constexpr int kMergeRows = 4;
constexpr int kMergeThreads = 32 * kMergeRows;

constexpr int kMergeSources = 16;

// One tensor of partial results, and of their natural-log LSE, or several of them behind each
// other.
struct MergeSource {
    const void* out;
    const float* lse;
    AttentionStrides out_strides;
    AttentionStrides lse_strides;
    long long out_part;  // elements from part to part
    long long lse_part;
    int parts;
};

struct MergeStatesParams {
    MergeSource sources[kMergeSources];
    int source_count;
    int parts;   // of all sources
    void* out;   // may be a part
    float* lse;  // may be that part's; null: not wanted
    AttentionStrides out_strides;
    AttentionStrides lse_strides;
    long long rows;  // batch * q_len * heads
    int q_len;       // packed: of all requests, and the batch is 1
    int heads;
};

}  // namespace jitney
