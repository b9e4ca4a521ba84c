// What attn_prefill_wgmma is launched with, and how it lays out shared memory; shared by host and
// device.
#pragma once

#include "attention/params.h"
#include "common/tensor_map.h"

namespace jitney {

constexpr int kWarpgroupThreads = 128;

// A warpgroup multiplies 64 rows; one more brings the tiles.
constexpr int wgmma_consumers(int tile_m) {
    return tile_m / 64;
}
constexpr int wgmma_threads(int tile_m) {
    return (wgmma_consumers(tile_m) + 1) * kWarpgroupThreads;
}

// Registers a thread, such that all warpgroups together have no more than an SM: where the kernel
// starts with 168 (two consumers) or 128 (three), what the producer gives is what they take.
constexpr int wgmma_producer_registers(int tile_m) {
    return wgmma_consumers(tile_m) == 3 ? 32 : 40;
}
constexpr int wgmma_consumer_registers(int tile_m) {
    return wgmma_consumers(tile_m) == 3 ? 160 : 232;
}

// A tile's rows lie in panels of 64 elements, 128 bytes (wgmma_operand.cuh).
constexpr int wgmma_panels(int head_dim) {
    return (head_dim + 63) / 64;
}
constexpr int wgmma_tile_bytes(int rows, int head_dim) {
    return rows * wgmma_panels(head_dim) * 128;
}

// A tile of Q, then rings of tiles of K and of V, and their barriers: of Q and of each stage one for
// full and one for empty, and as many for the two places where the producer leaves tile numbers.
struct PrefillWgmmaLayout {
    int k;
    int v;
    int barriers;
    int tile_numbers;
    int bytes;
};

constexpr int wgmma_barriers(int stages) {
    return 2 + 2 * 2 * stages + 2 * 2;
}

constexpr PrefillWgmmaLayout prefill_wgmma_layout(int head_dim, int head_dim_v, int tile_m,
                                                  int tile_n, int stages) {
    const int k = wgmma_tile_bytes(tile_m, head_dim);
    const int v = k + stages * wgmma_tile_bytes(tile_n, head_dim);
    const int barriers = v + stages * wgmma_tile_bytes(tile_n, head_dim_v);
    const int tile_numbers = barriers + wgmma_barriers(stages) * 8;
    return {k, v, barriers, tile_numbers, tile_numbers + 2 * 4};
}

// Boxes of the maps are 64 elements of tile_m / heads_a_tile positions (Q) or of tile_n keys (K and
// V), without gaps and swizzled over 128 bytes.
struct PrefillWgmmaParams {
    TensorMapBits q;  // [batch, q_heads / group, q_len, group, head_dim]; packed: batch 1
    TensorMapBits k;  // [batch, kv_heads, kv_len, head_dim]; packed: batch 1
    TensorMapBits v;

    // Here `group` is how many query heads a tile takes together, a divisor of tile_m and of the
    // query heads of a KV head, and `kv_heads` how many such groups there are.
    AttentionParams attention;

    int groups_a_kv_head;
    int heads_at_a_time;   // whose tiles take turns, so that their K and V stay in the L2
    unsigned* next_tile;   // zero before the first launch and again after each
};

}  // namespace jitney
