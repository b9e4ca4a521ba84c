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
// starts with 168 (two consumers) or 128 (three), what the producer gives is what they take. Who
// gathers rows of pages, or looks through a mask, needs more than who starts copies of boxes.
constexpr int wgmma_producer_registers(int tile_m, int tile_n, bool paged, bool mask) {
    if (wgmma_consumers(tile_m) == 3) return 32;
    if (!paged && !mask) return 40;
    return paged && tile_n > 64 ? 72 : 56;
}
constexpr int wgmma_consumer_registers(int tile_m, int tile_n, bool paged, bool mask) {
    if (wgmma_consumers(tile_m) == 3) return 160;
    return (3 * 168 - wgmma_producer_registers(tile_m, tile_n, paged, mask)) / 2;
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
// two barriers each as well, and one for all that tells that a note was taken. With a mask a note
// has a bit for each tile of keys, and each stage of V another barrier.
constexpr int kWgmmaNotes = 4;
constexpr int kWgmmaTileWords = 64;
constexpr int wgmma_note_bytes(bool mask) {
    return 96 + (mask ? 4 * kWgmmaTileWords : 0);
}
// Keys that a mask may have.
constexpr int wgmma_most_masked_keys(int tile_n) {
    return kWgmmaTileWords * 32 * tile_n;
}

struct PrefillWgmmaLayout {
    int k;
    int v;
    int barriers;
    int notes;
    int bytes;
};

constexpr int wgmma_barriers(int tile_m, int q_stages, int stages, bool mask) {
    return 2 * (q_stages * wgmma_consumers(tile_m) + 2 * stages + kWgmmaNotes + 1) +
           (mask ? stages : 0);
}

constexpr PrefillWgmmaLayout prefill_wgmma_layout(int head_dim, int head_dim_v, int tile_m,
                                                  int tile_n, int q_stages, int stages, bool mask) {
    const int k = q_stages * wgmma_tile_bytes(tile_m, head_dim);
    const int v = k + stages * wgmma_tile_bytes(tile_n, head_dim);
    const int barriers = v + stages * wgmma_tile_bytes(tile_n, head_dim_v);
    const int notes =
        (barriers + wgmma_barriers(tile_m, q_stages, stages, mask) * 8 + 15) / 16 * 16;
    return {k, v, barriers, notes, notes + kWgmmaNotes * wgmma_note_bytes(mask)};
}

// Behind next_tile, 16 bytes from it, as many that stay zero.
constexpr int kWgmmaCounterBytes = 32;

// Beside three consumers there are no registers for warps that gather rows.
constexpr bool wgmma_can_gather(int tile_m) {
    return wgmma_consumers(tile_m) < 3;
}

// Warps that gather rows where a box of keys would be smaller than this many; a page's keys are
// then copied row by row.
constexpr int kWgmmaGatherers = 2;
constexpr int kWgmmaLeastBox = 16;

// Keys of a box of the maps of a pool of pages: what divides a page and a tile. 0: rows are
// gathered.
constexpr int wgmma_box_keys(long long page_size, int tile_n) {
    int keys = 1;
    while (keys < tile_n && page_size % (2ll * keys) == 0 && tile_n % (2 * keys) == 0)
        keys *= 2;
    return keys < kWgmmaLeastBox ? 0 : keys;
}

// Boxes of the maps are 64 elements of 64 / group positions (Q) or of tile_n keys (K and V; of
// pools, box_keys), without gaps and swizzled over 128 bytes.
struct PrefillWgmmaParams {
    TensorMapBits q;  // [batch, q_heads / group, q_len, group, head_dim]; packed: batch 1
    TensorMapBits k;  // [batch, kv_heads, kv_len, head_dim]; packed: batch 1; pools: [pages,
                      // kv_heads, page_size, head_dim], and not read where rows are gathered
    TensorMapBits v;
    TensorMapBits out;  // like Q

    // Here `group` is how many query heads a tile takes together, a divisor of 64 and of the query
    // heads of a KV head, and `kv_heads` how many such groups there are.
    AttentionParams attention;

    int groups_a_kv_head;
    int heads_at_a_time;  // whose tiles take turns, so that their K and V stay in the L2
    int box_keys;         // of pools
    unsigned* next_tile;  // zero before the first launch and again after each
};

}  // namespace jitney
