// attn_prefill_scalar: attention of a tile of packed query rows without tensor cores. One block a
// tile of one KV head: grid.x = batch * kv_heads * row_tiles; packed: kv_heads * row_tiles.
#pragma once

#include "attention/scalar_tile.cuh"

namespace jitney {

template <class C>
__global__ void __launch_bounds__(kAttentionThreads)
    attn_prefill_scalar(const __grid_constant__ AttentionParams params) {
    using Tile = ScalarTile<C, false>;
    const int block = static_cast<int>(blockIdx.x);
    int batch;
    int kv_head;
    int row_tile;
    if constexpr (C::queries == kPackedQueries) {
        const int slot = block / params.kv_heads;
        kv_head = block - slot * params.kv_heads;
        batch = params.tile_batch[slot];
        if (batch < 0) return;
        row_tile = params.tile_index[slot];
    } else {
        const int head = block / params.row_tiles;
        batch = head / params.kv_heads;
        kv_head = head - batch * params.kv_heads;
        row_tile = block - head * params.row_tiles;
    }
    const Request request = request_of<C::kv, C::queries>(params, batch);
    const int first_row = row_tile * C::tile_m;
    const int last_row = min(first_row + C::tile_m, request.q_len * params.group) - 1;

    const Tile tile(params, request, kv_head, first_row);
    typename Tile::Result results[Tile::kRows];
    tile.run(tile_keys<C>(params, request, first_row, last_row).any, results);
#pragma unroll
    for (int row = 0; row < Tile::kRows; ++row) {
        const PackedRow packed =
            packed_row(params, request, kv_head, first_row + tile.warp * Tile::kRows + row);
        if (packed.valid) write_row<C>(params, request, packed, results[row], tile.lane);
    }
}

}  // namespace jitney
