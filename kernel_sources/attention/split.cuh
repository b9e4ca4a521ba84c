// Split-KV: the keys of a tile of rows are divided among warps and blocks, each leaves a partial
// result, and the parts are merged. The last block of a tile to finish merges what all blocks left
// in the workspace; its arrival counter wraps back to zero, so the workspace needs no clearing
// between launches.
#pragma once

#include "attention/layout.h"
#include "attention/rows.cuh"
#include "attention/softmax.cuh"
#include "common/element.cuh"

namespace jitney {

// The keys [first, end) that one split covers, in whole tiles of `tile` keys.
struct KeyRange {
    int first;
    int end;
};

JITNEY_DEVICE KeyRange split_range(int keys, int splits, int split, int tile) {
    const long long tiles = (static_cast<long long>(keys) + tile - 1) / tile;
    const long long keys_a_split = (tiles + splits - 1) / splits * tile;
    const long long first = min(split * keys_a_split, static_cast<long long>(keys));
    const long long end = min(first + keys_a_split, static_cast<long long>(keys));
    return {static_cast<int>(first), static_cast<int>(end)};
}

// One row as a warp holds it: the maximum in units of log2 (0 where nothing was seen), the sum, and
// the accumulators, not normalised; lane l has the elements l, l + 32, ... of the head.
template <int head_dim>
struct RowResult {
    static constexpr int kValues = (head_dim + 31) / 32;
    float maximum;
    float sum;
    float values[kValues];
};

// Partial results of `rows` rows from several parts, in shared or global memory.
struct Partials {
    float* out;      // [part, row, row_floats]
    float* maximum;  // [part, row]
    float* sum;      // [part, row]
    int rows;
    int row_floats;

    JITNEY_DEVICE long long slot(int part, int row) const {
        return static_cast<long long>(part) * rows + row;
    }
    JITNEY_DEVICE float* row_out(int part, int row) const {
        return out + slot(part, row) * row_floats;
    }

    template <int head_dim>
    JITNEY_DEVICE void store(int part, int row, const RowResult<head_dim>& result, int lane) const {
        float* to = row_out(part, row);
#pragma unroll
        for (int i = 0; i < RowResult<head_dim>::kValues; ++i) {
            if (lane + 32 * i < head_dim) to[lane + 32 * i] = result.values[i];
        }
        if (lane == 0) {
            maximum[slot(part, row)] = result.maximum;
            sum[slot(part, row)] = result.sum;
        }
    }

    // Merges `parts` parts of a row. A part that saw nothing has the sum 0 and weighs nothing.
    template <int head_dim>
    JITNEY_DEVICE RowResult<head_dim> merge(int parts, int row, int lane) const {
        float top = -infinity();
        for (int part = lane; part < parts; part += 32) {
            if (sum[slot(part, row)] != 0.0f) top = fmaxf(top, maximum[slot(part, row)]);
        }
        top = warp_max(top);
        RowResult<head_dim> result = {top == -infinity() ? 0.0f : top, 0.0f, {}};
        for (int first = 0; first < parts; first += 32) {
            float weight = 0.0f;
            if (first + lane < parts && sum[slot(first + lane, row)] != 0.0f) {
                weight = exp2_fast(maximum[slot(first + lane, row)] - result.maximum);
                result.sum += weight * sum[slot(first + lane, row)];
            }
            const int count = min(32, parts - first);
#pragma unroll 4
            for (int part = 0; part < count; ++part) {
                const float part_weight = __shfl_sync(kAllLanes, weight, part);
                const float* from = row_out(first + part, row);
#pragma unroll
                for (int i = 0; i < RowResult<head_dim>::kValues; ++i) {
                    if (lane + 32 * i < head_dim) {
                        result.values[i] += part_weight * from[lane + 32 * i];
                    }
                }
            }
        }
        result.sum = warp_sum(result.sum);
        return result;
    }
};

// The workspace of one tile.
template <class C>
JITNEY_DEVICE Partials workspace_partials(const AttentionParams& params, int tile) {
    const long long rows = static_cast<long long>(tile) * params.splits * C::tile_m;
    return {params.partial_out + rows * C::head_dim, params.partial_max + rows,
            params.partial_sum + rows, C::tile_m, C::head_dim};
}

// Normalises and writes a finished row.
template <class C>
JITNEY_DEVICE void write_row(const AttentionParams& params, int batch, const PackedRow& row,
                             const RowResult<C::head_dim>& result, int lane) {
    using T = Element<C::format>;
    const float norm = result.sum == 0.0f ? 0.0f : 1.0f / result.sum;
    T* out =
        static_cast<T*>(params.out) + offset_of(params.out_strides, batch, row.position, row.head);
#pragma unroll
    for (int i = 0; i < RowResult<C::head_dim>::kValues; ++i) {
        if (lane + 32 * i < C::head_dim) out[lane + 32 * i] = T::from(result.values[i] * norm);
    }
    if (params.lse != nullptr && lane == 0) {
        params.lse[offset_of(params.lse_strides, batch, row.position, row.head)] =
            row_lse(result.maximum, result.sum);
    }
}

// True in every thread of the block that arrives last of a tile's splits. `flag` is a word of
// shared memory that nothing else uses.
JITNEY_DEVICE bool arrive_last(const AttentionParams& params, int tile, unsigned* flag) {
    __threadfence();  // what this thread left is visible before the block counts as arrived
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned last = static_cast<unsigned>(params.splits) - 1;
        *flag = atomicInc(params.arrived + tile, last) == last ? 1u : 0u;
    }
    __syncthreads();
    __threadfence();
    return *flag != 0;
}

// Where a block of a decode kernel stands: grid.x = tiles * splits.
struct SplitBlock {
    int tile;  // over batch, KV heads and row tiles
    int split;
    int batch;
    int kv_head;
    int first_row;  // of the packed rows
    int rows;       // of this tile that belong to queries

    JITNEY_DEVICE SplitBlock(const AttentionParams& params, int tile_m) {
        const int block = static_cast<int>(blockIdx.x);
        tile = block / params.splits;
        split = block - tile * params.splits;
        const int head = tile / params.row_tiles;
        batch = head / params.kv_heads;
        kv_head = head - batch * params.kv_heads;
        first_row = (tile - head * params.row_tiles) * tile_m;
        rows = min(tile_m, params.q_len * params.group - first_row);
    }
};

// Ends a decode block. for_my_results(body) calls body(row, result) for the rows whose results this
// warp holds. With one split they are the output; otherwise the last block to arrive merges all.
template <class C, class ForMyResults>
JITNEY_DEVICE void finish_split(const AttentionParams& params, const SplitBlock& block,
                                unsigned* flag, const ForMyResults& for_my_results) {
    using Result = RowResult<C::head_dim>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto write = [&](int row, const Result& result) {
        write_row<C>(params, block.batch, packed_row(params, block.kv_head, block.first_row + row),
                     result, lane);
    };
    if (params.splits == 1) {
        for_my_results(write);
        return;
    }
    const Partials partials = workspace_partials<C>(params, block.tile);
    for_my_results(
        [&](int row, const Result& result) { partials.store(block.split, row, result, lane); });
    if (!arrive_last(params, block.tile, flag)) return;
    for (int row = warp; row < block.rows; row += kAttentionWarps) {
        write(row, partials.template merge<C::head_dim>(params.splits, row, lane));
    }
}

}  // namespace jitney
