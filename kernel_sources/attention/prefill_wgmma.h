// What attn_prefill_wgmma is launched with, and how it lays out shared memory; shared by host and
// device.
#pragma once

#include "attention/params.h"
#include "common/tensor_map.h"

namespace jitney {

constexpr int kWarpgroupThreads = 128;
constexpr int kWarpgroupRows = 64;

// The warpgroups that multiply; one more brings the tiles.
constexpr int wgmma_consumers(int tile_m) {
    return tile_m / kWarpgroupRows;
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

// Where three tiles of Q have room, the output goes through the memory of the one that was used
// last, and is written by the copy engine; where not, straight from the registers.
constexpr bool wgmma_stages_output(int q_stages) {
    return q_stages >= 3;
}

// Rings of tiles of Q, of K and of V; their barriers, of each stage of each warpgroup's rows of Q,
// and of each stage of K and V, one for full and one for empty; and notes on tiles of rows, with
// two barriers each as well, and one for all that tells that a note was taken.
constexpr int kWgmmaNotes = 4;
constexpr int kWgmmaNoteBytes = 96;

struct PrefillWgmmaLayout {
    int k;
    int v;
    int barriers;
    int notes;
    int bytes;
};

constexpr int wgmma_barriers(int tile_m, int q_stages, int stages) {
    return 2 * (q_stages * wgmma_consumers(tile_m) + 2 * stages + kWgmmaNotes + 1);
}

constexpr PrefillWgmmaLayout prefill_wgmma_layout(int head_dim, int head_dim_v, int tile_m,
                                                  int tile_n, int q_stages, int stages) {
    const int k = q_stages * wgmma_tile_bytes(tile_m, head_dim);
    const int v = k + stages * wgmma_tile_bytes(tile_n, head_dim);
    const int barriers = v + stages * wgmma_tile_bytes(tile_n, head_dim_v);
    const int notes = barriers + wgmma_barriers(tile_m, q_stages, stages) * 8;
    return {k, v, barriers, notes, notes + kWgmmaNotes * kWgmmaNoteBytes};
}

// Behind next_tile, 16 bytes from it, as many that stay zero.
constexpr int kWgmmaCounterBytes = 32;

// Boxes of the maps are 64 elements of 64 / group positions (Q) or of tile_n keys (K and V),
// without gaps and swizzled over 128 bytes.
struct PrefillWgmmaParams {
    TensorMapBits q;  // [batch, q_heads / group, q_len, group, head_dim]; packed: batch 1
    TensorMapBits k;  // [batch, kv_heads, kv_len, head_dim]; packed: batch 1
    TensorMapBits v;
    TensorMapBits out;  // like Q

    // Here `group` is how many query heads a tile takes together, a divisor of 64 and of the query
    // heads of a KV head, and `kv_heads` how many such groups there are.
    AttentionParams attention;

    int groups_a_kv_head;
    int heads_at_a_time;  // whose tiles take turns, so that their K and V stay in the L2
    unsigned* next_tile;  // zero before the first launch and again after each
};

}  // namespace jitney
