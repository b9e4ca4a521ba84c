// Split-KV: the keys of a tile of rows are divided among warps and blocks, each leaves a partial
// result, and the parts are merged. The last block of a tile to finish merges what all blocks left
// in the workspace; its arrival counter wraps back to zero, so the workspace needs no clearing
// between launches.
#pragma once

#include "attention/layout.h"
#include "attention/logits.cuh"
#include "attention/merge.cuh"
#include "attention/rows.cuh"
#include "common/arrival.cuh"
#include "common/element.cuh"

namespace jitney {

// The part of a tile's keys that one of its blocks takes.
struct KeyPart {
    KeyRange keys;
    int parts;  // of the tile; blocks beyond have nothing to do
};

// Parts are whole steps of `step` keys, counted from the first key: those before it may stand
// nowhere, or hold anything.
JITNEY_DEVICE KeyPart key_part(const AttentionParams& params, const KeyRange& keys, int split,
                               int step) {
    const int steps = (keys.end - keys.first + step - 1) / step;
    int parts = params.splits;
    long long keys_a_part;
    if (params.split_keys == 0) {
        keys_a_part = static_cast<long long>((steps + parts - 1) / parts) * step;
    } else {
        const int least = params.split_keys / step;
        const int steps_a_part = max(least, (steps + params.split_parts - 1) / params.split_parts);
        parts = max(1, min(parts, (steps + steps_a_part - 1) / steps_a_part));
        keys_a_part = static_cast<long long>(steps_a_part) * step;
    }
    const long long last = keys.end;
    const long long first = min(keys.first + split * keys_a_part, last);
    // More keys than blocks were launched for stay with the last of them.
    const long long end = split == parts - 1 ? last : min(first + keys_a_part, last);
    return {{static_cast<int>(first), static_cast<int>(end)}, parts};
}

// Partial results of `rows` rows from several parts, in shared or global memory.
struct Partials {
    float* out;                 // [part, row, row_floats]
    RowStatistics* statistics;  // [part, row]
    int rows;
    int row_floats;

    JITNEY_DEVICE long long slot(int part, int row) const {
        return static_cast<long long>(part) * rows + row;
    }
    JITNEY_DEVICE float* row_out(int part, int row) const {
        return out + slot(part, row) * row_floats;
    }

    template <class Result>
    JITNEY_DEVICE void store(int part, int row, const Result& result, int lane) const {
        float* to = row_out(part, row);
        Result::for_each_vector(lane,
                                [&](int i, int dim) { store_vector(to + dim, result.values[i]); });
        if (lane == 0) statistics[slot(part, row)] = {result.maximum, result.sum};
    }

    template <class Result, int ahead>
    JITNEY_DEVICE Result merge(int parts, int row, int lane) const {
        return merge_parts<Result, ahead>(
            parts, lane, [&](int part) { return statistics[slot(part, row)]; },
            [&](int part, typename Result::Values& values) {
                const float* from = row_out(part, row);
                Result::for_each_vector(lane, [&](int i, int dim) {
                    values[i] = load_vector<Result::width>(from + dim);
                });
            });
    }
};

// The workspace of one tile.
template <class C>
JITNEY_DEVICE Partials workspace_partials(const AttentionParams& params, int tile) {
    const long long rows = static_cast<long long>(tile) * params.splits * C::tile_m;
    return {params.partial_out + rows * C::head_dim,
            static_cast<RowStatistics*>(params.partial_statistics) + rows, C::tile_m, C::head_dim};
}

// Normalises and writes a finished row.
template <class C, class Result>
JITNEY_DEVICE void write_row(const AttentionParams& params, const Request& request,
                             const PackedRow& row, const Result& result, int lane) {
    using T = Element<C::format>;
    const RowEnd end = row_end<C>(params, row.head, result.maximum, result.sum);
    result.write(static_cast<T*>(params.out) + query_offset_of(params.out_strides, request, row),
                 end.norm, lane);
    if (params.lse != nullptr && lane == 0) {
        params.lse[query_offset_of(params.lse_strides, request, row)] = end.lse;
    }
}

// Where a block of a decode kernel stands: grid.x = tiles * splits.
template <class C>
struct SplitBlock {
    int tile;  // over batch, KV heads and row tiles
    int split;
    int kv_head;
    Request request;
    int first_row;  // of the packed rows
    int rows;       // of this tile that belong to queries

    JITNEY_DEVICE explicit SplitBlock(const AttentionParams& params) {
        const int block = static_cast<int>(blockIdx.x);
        tile = block / params.splits;
        split = block - tile * params.splits;
        const int head = tile / params.row_tiles;
        const int batch = head / params.kv_heads;
        kv_head = head - batch * params.kv_heads;
        request = request_of<C::kv, kDenseQueries>(params, batch);
        first_row = (tile - head * params.row_tiles) * C::tile_m;
        rows = min(C::tile_m, request.q_len * params.group - first_row);
    }

    JITNEY_DEVICE TileKeys keys(const AttentionParams& params) const {
        return tile_keys<C>(params, request, first_row, first_row + rows - 1);
    }
};

// Ends a decode block. for_my_results(body) calls body(row, result) for the rows whose results this
// warp holds. With one part they are the output; otherwise the last block to arrive merges all.
template <class C, class Result, class ForMyResults>
JITNEY_DEVICE void finish_split(const AttentionParams& params, const SplitBlock<C>& block,
                                int parts, unsigned* flag, const ForMyResults& for_my_results) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = warp_index();
    const auto write = [&](int row, const Result& result) {
        write_row<C>(params, block.request,
                     packed_row(params, block.request, block.kv_head, block.first_row + row),
                     result, lane);
    };
    const Partials partials = workspace_partials<C>(params, block.tile);
    for_my_results([&](int row, const Result& result) {
        if (parts == 1) {
            write(row, result);
        } else {
            partials.store(block.split, row, result, lane);
        }
    });
    if (parts == 1) return;
    if (!arrive_last(params.arrived + block.tile, static_cast<unsigned>(parts), flag)) return;
#pragma unroll 1
    for (int row = warp; row < block.rows; row += kAttentionWarps) {
        write(row, partials.template merge<Result, kMergeAhead<Result>>(parts, row, lane));
    }
}

}  // namespace jitney
