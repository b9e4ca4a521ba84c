// What rotary_emb is launched with; shared by host and device.
#pragma once

namespace jitney {

// One of the two tensors of a launch, [batch, length, heads, head_dim] by strides in elements.
struct RotaryTensor {
    const void* x;
    void* out;  // may be x
    long long x_batch, x_row, x_head;
    long long out_batch, out_row, out_head;
    int heads;  // 0: no such tensor
};

struct RotaryParams {
    RotaryTensor tensors[2];  // q and k
    const float* cos;         // [table_rows, rotary_dim / 2]
    const float* sin;
    long long table_stride;  // elements from row to row, of both
    const void* positions;   // null: the index along the length
    long long positions_batch;
    long long positions_row;
    int positions_are_64_bit;
    int table_rows;
    int length;
    long long tokens;  // batch * length
    int rotary_dim;
    int head_dim;  // elements of a head to write: rotary_dim where the call is in place
    int items;     // pieces of a head
    // Heads of both tensors that are begun at once, each by `items` threads, which go on to
    // others; and all threads of a token.
    int heads_at_once;
    int threads_a_token;
    int tokens_a_block;  // at least 1
};

constexpr int kRotaryThreads = 256;

// Heads of which a thread holds a piece, of so many bytes, at once: 64 bytes.
constexpr int rotary_heads_held(int bytes) {
    return bytes >= 64 ? 1 : (bytes >= 32 ? 2 : 4);
}

// Pieces of work a head: `pairs` rotated pairs each, and behind them copies of the elements past
// rotary_dim, as many at once as the pairs take, or one by one.
constexpr int rotary_copy_width(int pairs) {
    return pairs == 1 ? 1 : 2 * pairs;
}
constexpr int rotary_items(int head_dim, int rotary_dim, int pairs) {
    return rotary_dim / 2 / pairs + (head_dim - rotary_dim) / rotary_copy_width(pairs);
}

}  // namespace jitney
