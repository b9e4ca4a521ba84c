// Which tile of rows a block of attn_prefill_wgmma works on, and which next. Blocks that stay take
// the tiles in one order, each the next that nobody has taken.
#pragma once

#include "attention/masking.cuh"
#include "attention/prefill_wgmma.h"

namespace jitney {

// A tile of packed rows of one request and one group of heads, and the keys that it needs.
template <class C>
struct WgmmaTile {
    Request request;
    int group;      // of heads, over all KV heads of the request
    int first_row;  // of the request's packed rows; its last is below first_row + tile_m
    int first_key;
    int key_tiles;

    JITNEY_DEVICE int key_of(int step) const {  // from the last to the first
        return first_key + (key_tiles - 1 - step) * C::tile_n;
    }
};

template <class C>
JITNEY_DEVICE int wgmma_tiles(const AttentionParams& params) {
    return params.row_tiles * params.kv_heads *
           (C::queries == kPackedQueries ? 1 : params.batch);
}

// Tile number `number` in the order in which they are taken.
template <class C>
JITNEY_DEVICE WgmmaTile<C> wgmma_tile(const PrefillWgmmaParams& params, int number) {
    const AttentionParams& p = params.attention;
    WgmmaTile<C> tile = {};
    int batch;
    int row_tile;
    if constexpr (C::queries == kPackedQueries) {
        const int slot = number / p.kv_heads;
        tile.group = number - slot * p.kv_heads;
        batch = p.tile_batch[slot];
        row_tile = batch < 0 ? -1 : p.tile_index[slot];
    } else {
        const int heads = p.batch * p.kv_heads;
        int head;
        if constexpr (C::causal != 0 || C::mask != 0) {
            // The longest tiles of some heads first, then those of the next.
            const int band = number / (params.heads_at_a_time * p.row_tiles);
            const int first_head = band * params.heads_at_a_time;
            const int heads_here = min(params.heads_at_a_time, heads - first_head);
            const int in_band = number - first_head * p.row_tiles;
            const int turn = in_band / heads_here;
            head = first_head + in_band - turn * heads_here;
            row_tile = p.row_tiles - 1 - turn;
        } else {
            head = number / p.row_tiles;
            row_tile = number - head * p.row_tiles;
        }
        batch = head / p.kv_heads;
        tile.group = head - batch * p.kv_heads;
    }
    if (row_tile < 0) return tile;
    tile.request = request_of<C::kv, C::queries>(p, batch);
    tile.first_row = row_tile * C::tile_m;
    const int last_row = min(tile.first_row + C::tile_m, tile.request.q_len * p.group) - 1;
    const KeyRange keys = tile_keys<C>(p, tile.request, tile.first_row, last_row).any;
    tile.first_key = keys.first;
    tile.key_tiles = (keys.end - keys.first + C::tile_n - 1) / C::tile_n;
    return tile;
}

}  // namespace jitney
