// attn_work_map: which tile of which request each block of a packed prefill works on, so that the
// block finds its request at once. One block; it reads the lengths on the device, so that a
// captured launch follows them.
#pragma once

#include "attention/work_map.h"
#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE int tiles_of_request(const WorkMapParams& params, int request) {
    const int queries = params.qo_indptr[request + 1] - params.qo_indptr[request];
    return max((queries * params.group + params.tile_m - 1) / params.tile_m, 0);
}

// The tiles of a request stand behind each other, the last first: under a causal mask it sees the
// most keys. Slots that are left over get -1; tiles beyond the last slot are dropped.
template <class C>
__global__ void __launch_bounds__(C::threads)
    attn_work_map(const __grid_constant__ WorkMapParams params) {
    int* ends = reinterpret_cast<int*>(shared_memory());  // tiles up to and with each request
    const int thread = static_cast<int>(threadIdx.x);
    int base = 0;
    for (int first = 0; first < params.batch; first += C::threads) {
        ends[thread] = first + thread < params.batch ? tiles_of_request(params, first + thread) : 0;
        __syncthreads();
        for (int step = 1; step < C::threads; step *= 2) {
            const int before = thread >= step ? ends[thread - step] : 0;
            __syncthreads();
            ends[thread] += before;
            __syncthreads();
        }
        const int tiles = ends[C::threads - 1];
        for (int tile = thread; tile < min(tiles, params.slots - base); tile += C::threads) {
            int request = 0;  // the first that ends behind this tile
            for (int step = C::threads / 2; step > 0; step /= 2) {
                if (ends[request + step - 1] <= tile) request += step;
            }
            params.tile_batch[base + tile] = first + request;
            params.tile_index[base + tile] = ends[request] - 1 - tile;
        }
        base += tiles;
        __syncthreads();  // nobody reads the ends of this round any more
    }
    for (int slot = base + thread; slot < params.slots; slot += C::threads)
        params.tile_batch[slot] = -1;
}

}  // namespace jitney
