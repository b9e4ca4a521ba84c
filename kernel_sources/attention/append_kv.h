// What append_kv is launched with; shared by host and device.
#pragma once

#include "attention/params.h"
#include "rotary/params.h"

namespace jitney {

constexpr int kAppendThreads = 256;

struct AppendKvParams {
    // The cache (k, v, and where the keys of each request stand), and new_k and new_v: q_len of
    // each request, or packed as qo_indptr says.
    AttentionParams cache;
    // Tables and positions; its first tensor is q, which may be missing. Without rotary only that.
    RotaryParams rotary;
    int head_dim;
    int k_items;  // pieces of work a head of K,
    int v_items;  // of V,
    int q_items;  // and of q
    int tokens_a_block;
    long long tokens;
};

// Elements of a piece of a head that is only copied: 16 bytes, or one element where the launch
// moves single pairs.
constexpr int append_copy_width(int pairs, int element_bytes) {
    return pairs == 1 ? 1 : 16 / element_bytes;
}

// Where each of a block's tokens goes.
constexpr int append_shared_bytes(int tokens_a_block) {
    return tokens_a_block * 48;
}

}  // namespace jitney
