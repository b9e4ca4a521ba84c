// What every attention kernel is launched with; shared by host and device.
#pragma once

namespace jitney {

// Element distances within [batch, length, heads, head_dim] (or a part of it).
struct AttentionStrides {
    long long batch;
    long long row;
    long long head;
};

struct AttentionParams {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;                 // null: not wanted
    const unsigned char* mask;  // non-zero = keep; rows are queries, one byte a key

    AttentionStrides q_strides;
    AttentionStrides k_strides;
    AttentionStrides v_strides;
    AttentionStrides out_strides;
    AttentionStrides lse_strides;
    AttentionStrides mask_strides;  // 0 where the mask has no such dimension

    int batch;
    int q_len;
    int kv_len;
    int kv_heads;
    int group;         // query heads of one KV head
    int row_tiles;     // tiles of q_len * group packed rows
    float scale_log2;  // softmax scale * log2(e), positive

    // Split-KV. With one split a block writes the output itself; with more, partial results go
    // to the workspace and the last block of a tile to finish merges them.
    int splits;
    float* partial_out;        // [tile, split, row, head_dim], not normalised
    void* partial_statistics;  // [tile, split, row]: maximum in units of log2, and sum
    unsigned int* arrived;     // [tile], zero before the first launch and again after each
};

}  // namespace jitney
