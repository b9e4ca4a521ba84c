// How attn_decode_cluster lays out shared memory; shared by host and device.
#pragma once

#include "attention/layout.h"

namespace jitney {

// Blocks that a cluster has at most, on every GPU that has clusters.
constexpr int kMostClusterBlocks = 8;

// Rows of a tile begin at lines of 128 bytes.
constexpr int line_row_bytes(int head_dim) {
    return (mma_dim(head_dim) * 2 + 127) / 128 * 128;
}

// Each warp streams tiles of K and V in turn through a ring of its own.
constexpr int decode_cluster_ring_bytes(int head_dim, int tile_n, int stages) {
    return stages * tile_n * line_row_bytes(head_dim);
}

// In the memory of the rings the accumulators of the warps meet, as those of attn_decode_mma do.
// Behind them stand the rows that the block made of them, each with its maximum and sum, where the
// other blocks of the cluster read them.
constexpr int decode_cluster_rows_at(int head_dim, int tile_m) {
    const int meeting = kAttentionWarps * tile_m * (decode_mma_row_floats(head_dim) + 2) * 4 + 4;
    return (meeting + 15) / 16 * 16;
}

constexpr int decode_cluster_shared_bytes(int head_dim, int tile_m, int tile_n, int stages) {
    const int rings = kAttentionWarps * decode_cluster_ring_bytes(head_dim, tile_n, stages);
    const int rows = decode_cluster_rows_at(head_dim, tile_m) + tile_m * (head_dim + 2) * 4;
    return rings > rows ? rings : rows;
}

}  // namespace jitney
