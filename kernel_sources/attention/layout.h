// How the attention kernels lay out shared memory and split work; shared by host and device, so
// that the geometry of a launch and the code that runs in it can't disagree.
#pragma once

namespace jitney {

constexpr int kAttentionWarps = 4;
constexpr int kAttentionThreads = 32 * kAttentionWarps;

// The head dimension as the tensor cores see it: filled with zeros to a multiple of 16.
constexpr int mma_dim(int head_dim) {
    return (head_dim + 15) / 16 * 16;
}

// Bytes from one row of a 16-bit tile to the next. An odd number of 16-byte chunks, so that the
// eight rows of an ldmatrix fall into different banks whatever the head dimension is.
constexpr int mma_row_bytes(int head_dim) {
    return mma_dim(head_dim) * 2 + 16;
}

// Of a row, in shared memory: what its logits are edited by.
constexpr int row_logits_bytes(bool edits, bool caller_edits) {
    return caller_edits ? 12 : (edits ? 8 : 0);
}

// attn_prefill_mma: the warps that share the rows of a warp tile. One has them alone where its
// accumulators fit into the registers; above head_dim 128 two divide keys and head dimension.
constexpr int prefill_mma_sides(int head_dim, int tile_n) {
    return mma_dim(head_dim) > 128 && tile_n % 32 == 0 ? 2 : 1;
}

// A tile of Q, one of K and one of V, and behind them, where the specialization has them: the page
// numbers of two tiles of keys, of each row what edits its logits, and what two sides tell each
// other, the weights of the rows (each row 16 bytes further than its keys take, against bank
// conflicts) and a number of each side and row.
constexpr int prefill_mma_weight_row_bytes(int tile_n) {
    return tile_n * 2 + 16;
}

struct PrefillMmaLayout {
    int pages;  // where each begins
    int logits;
    int weights;
    int numbers;
    int bytes;  // in all
};

constexpr PrefillMmaLayout prefill_mma_layout(int head_dim, int tile_m, int tile_n, bool paged,
                                              int logits_bytes) {
    const bool shares = prefill_mma_sides(head_dim, tile_n) == 2;
    const int pages = (tile_m + 2 * tile_n) * mma_row_bytes(head_dim);
    const int logits = pages + (paged ? 2 * tile_n * 4 : 0);
    const int weights = logits + tile_m * logits_bytes;
    const int numbers = weights + (shares ? tile_m * prefill_mma_weight_row_bytes(tile_n) : 0);
    return {pages, logits, weights, numbers, numbers + (shares ? 2 * tile_m * 4 : 0)};
}

// attn_decode_mma: each warp streams tiles of K and V in turn through a ring of its own.
constexpr int decode_mma_ring_bytes(int head_dim, int tile_n, int stages) {
    return stages * tile_n * mma_row_bytes(head_dim);
}

// The accumulators of the warps meet in fp32 in the memory of the rings, followed by the maxima
// and sums of their rows and the flag of arrive_last. Eight floats between rows keep the stores of
// a warp in different banks.
constexpr int decode_mma_row_floats(int head_dim) {
    return mma_dim(head_dim) + 8;
}

constexpr int decode_mma_shared_bytes(int head_dim, int tile_m, int tile_n, int stages) {
    const int rings = kAttentionWarps * decode_mma_ring_bytes(head_dim, tile_n, stages);
    const int meeting = kAttentionWarps * tile_m * (decode_mma_row_floats(head_dim) + 2) * 4 + 4;
    return rings > meeting ? rings : meeting;
}

// The scalar kernels: the query rows of the tile as fp32, one tile of K or V as it is stored (an
// odd number of words from row to row, so that 32 lanes reading one element of 32 rows fall into
// different banks), and the flag of arrive_last.
constexpr int scalar_row_bytes(int head_dim, int element_bytes) {
    const int words = (head_dim * element_bytes + 3) / 4;
    return (words % 2 == 0 ? words + 1 : words) * 4;
}

constexpr int scalar_shared_bytes(int head_dim, int element_bytes, int tile_m, int tile_n) {
    return tile_m * head_dim * 4 + tile_n * scalar_row_bytes(head_dim, element_bytes) + 4;
}

}  // namespace jitney
