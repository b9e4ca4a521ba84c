// Rows of A that belong to groups, each of which is multiplied with a matrix of its own. How many
// tiles a group has is known on the device alone.
#pragma once

#include "common/warp.cuh"
#include "fp8/gemm_params.h"

namespace jitney {

struct Fp8GroupPlace {
    int group;
    int first;  // rows of the group
    int end;
    int tile;  // among those of the group
};

// Where the tile of this number is, of all tiles of `tile_m` rows and n_tiles times as many; false
// where there are not as many. By all lanes of a warp, 32 groups at a time.
JITNEY_DEVICE bool find_fp8_group(const Fp8GemmParams& params, int tile_m, int tile,
                                  Fp8GroupPlace& place) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    int before = 0;  // tiles of the groups ahead
#pragma unroll 1
    for (int base = 0; base < params.groups; base += kWarpSize) {
        const int group = base + lane;
        int first = 0;
        int end = 0;
        if (group < params.groups) {
            first = max(params.group_indptr[group], 0);
            end = min(params.group_indptr[group + 1], params.m);
        }
        const int tiles = end > first ? (end - first + tile_m - 1) / tile_m * params.n_tiles : 0;
        int upto = tiles;  // those of the lanes before, and of this
#pragma unroll
        for (int step = 1; step < kWarpSize; step *= 2) {
            const int ahead = __shfl_sync(kAllLanes, upto, max(lane - step, 0));
            if (lane >= step) upto += ahead;
        }
        const unsigned behind = __ballot_sync(kAllLanes, before + upto > tile);
        if (behind != 0) {
            const int found = __ffs(static_cast<int>(behind)) - 1;
            place.group = base + found;
            place.first = __shfl_sync(kAllLanes, first, found);
            place.end = __shfl_sync(kAllLanes, end, found);
            place.tile = tile - before - __shfl_sync(kAllLanes, upto - tiles, found);
            return true;
        }
        before += __shfl_sync(kAllLanes, upto, kWarpSize - 1);
    }
    return false;
}

}  // namespace jitney
