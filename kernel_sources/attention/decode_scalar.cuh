// attn_decode_scalar: attention of a few packed query rows over many keys without tensor cores,
// the keys divided among blocks.
#pragma once

#include "attention/append.cuh"
#include "attention/scalar_tile.cuh"

namespace jitney {

template <class C>
__global__ void __launch_bounds__(kAttentionThreads)
    attn_decode_scalar(const __grid_constant__ AttentionParams params) {
    using Tile = ScalarTile<C, C::append != 0>;
    const SplitBlock<C> block(params);
    const KeyPart part = key_part(params, block.keys(params).any, block.split, C::tile_n);
    if (block.split >= part.parts) return;

    const Tile tile(params, block.request, block.kv_head, block.first_row);
    typename Tile::Result results[Tile::kRows];
    tile.run(part.keys, results);
    if constexpr (C::append != 0) {
        if (block.first_row == 0 && block.split == part.parts - 1) {
            constexpr int bytes = sizeof(Element<C::format>);
            append_rows<C, bytes, bytes>(params, block.request, block.kv_head);
        }
    }
    const auto for_my_results = [&](const auto& body) {
#pragma unroll
        for (int i = 0; i < Tile::kRows; ++i) {
            const int row = tile.warp * Tile::kRows + i;
            if (row < block.rows) body(row, results[i]);
        }
    };
    finish_split<C, typename Tile::Result>(params, block, part.parts, tile.flag(), for_my_results);
}

}  // namespace jitney
