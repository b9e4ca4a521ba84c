// attn_prefill_scalar: attention of a tile of packed query rows without tensor cores. One block a
// tile of one KV head: grid.x = batch * kv_heads * row_tiles.
#pragma once

#include "attention/scalar_tile.cuh"

namespace jitney {

template <class C>
__global__ void __launch_bounds__(kAttentionThreads)
    attn_prefill_scalar(const __grid_constant__ AttentionParams params) {
    using Tile = ScalarTile<C>;
    const int block = static_cast<int>(blockIdx.x);
    const int head = block / params.row_tiles;
    const int batch = head / params.kv_heads;
    const int kv_head = head - batch * params.kv_heads;
    const int first_row = (block - head * params.row_tiles) * C::tile_m;
    const int last_row = min(first_row + C::tile_m, params.q_len * params.group) - 1;

    const Tile tile(params, batch, kv_head, first_row);
    typename Tile::Result results[Tile::kRows];
    tile.run({0, visible_keys<C>(params, last_row / params.group)}, results);
#pragma unroll
    for (int row = 0; row < Tile::kRows; ++row) {
        const PackedRow packed =
            packed_row(params, kv_head, first_row + tile.warp * Tile::kRows + row);
        if (packed.valid) write_row<C>(params, batch, packed, results[row], tile.lane);
    }
}

}  // namespace jitney
