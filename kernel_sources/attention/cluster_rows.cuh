// Rows whose keys are divided among the blocks of a cluster: merged through each other's shared
// memory, without a way through the workspace.
#pragma once

#include "attention/decode_cluster.h"
#include "attention/split.cuh"
#include "common/cluster.cuh"

namespace jitney {

// The rows that each block of the cluster has made of its part of the keys, in its shared memory.
template <class C, class Result>
struct ClusterRows {
    SharedAddress out;         // of this block: [row, head_dim]
    SharedAddress statistics;  // [row]

    JITNEY_DEVICE ClusterRows()
        : out(shared_address(shared_memory()) + decode_cluster_rows_at(C::head_dim, C::tile_m)),
          statistics(out + C::tile_m * C::head_dim * 4) {}

    JITNEY_DEVICE static Partials own() {
        char* const rows = shared_memory() + decode_cluster_rows_at(C::head_dim, C::tile_m);
        return {reinterpret_cast<float*>(rows),
                reinterpret_cast<RowStatistics*>(rows + C::tile_m * C::head_dim * 4), C::tile_m,
                C::head_dim};
    }

    JITNEY_DEVICE Result merge(unsigned blocks, int row, int lane) const {
        return merge_parts<Result, kMostClusterBlocks>(
            static_cast<int>(blocks), lane,
            [&](int block) {
                float both[2];
                cluster_load(both, address_in_block(statistics + row * 8, block));
                return RowStatistics{both[0], both[1]};
            },
            [&](int block, typename Result::Values& values) {
                const SharedAddress from = address_in_block(out + row * C::head_dim * 4, block);
                Result::for_each_vector(
                    lane, [&](int i, int dim) { cluster_load(values[i].items, from + dim * 4); });
            });
    }
};

// Ends a block of a cluster. for_my_results(body) calls body(row, result) for the rows whose
// results this warp holds. Block number r merges the rows r, r + blocks, ... of all blocks.
template <class C, class Result, class ForMyResults>
JITNEY_DEVICE void finish_cluster(const AttentionParams& params, const SplitBlock<C>& block,
                                  unsigned blocks, const ForMyResults& for_my_results) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const ClusterRows<C, Result> rows;
    for_my_results([&](int row, const Result& result) { rows.own().store(0, row, result, lane); });
    cluster_barrier();
    const int step = static_cast<int>(blocks);
#pragma unroll 1
    for (int row = static_cast<int>(block_in_cluster()) + warp_index() * step; row < block.rows;
         row += kAttentionWarps * step) {
        write_row<C>(params, block.request,
                     packed_row(params, block.request, block.kv_head, block.first_row + row),
                     rows.merge(blocks, row, lane), lane);
    }
    cluster_barrier();  // nobody reads the rows of this block any more
}

}  // namespace jitney
