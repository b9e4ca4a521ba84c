// The two products of attention for one warp: S = Q K^T and O += P V, over tiles in shared memory.
#pragma once

#include "attention/tile_loads.cuh"
#include "common/element.cuh"
#include "common/mma.cuh"

namespace jitney {

// scores += q * k^T for one 16-wide step of the head dimension and all keys of a tile. `keys` is
// the lane's address (lane_address_columns) of that step in the tile's first 16 keys.
template <int format, int head_dim, int row_blocks, int key_blocks>
JITNEY_DEVICE void multiply_keys(float (&scores)[row_blocks][key_blocks][4],
                                 const unsigned (&q)[row_blocks][4], SharedAddress keys) {
#pragma unroll
    for (int pair = 0; pair < key_blocks / 2; ++pair) {
        unsigned k[4];
        ldmatrix_x4(k, keys + pair * 16 * mma_row_bytes(head_dim));
#pragma unroll
        for (int block = 0; block < row_blocks; ++block) {
            mma_m16n8k16<format>(scores[block][2 * pair], q[block], k[0], k[1]);
            mma_m16n8k16<format>(scores[block][2 * pair + 1], q[block], k[2], k[3]);
        }
    }
}

// out += p * v for a tile. `values` is the lane's address (lane_address_rows) in its first 16 keys.
template <int format, int head_dim, int row_blocks, int key_blocks, int dim_blocks>
JITNEY_DEVICE void multiply_values(float (&out)[row_blocks][dim_blocks][4],
                                   const float (&scores)[row_blocks][key_blocks][4],
                                   SharedAddress values) {
    using T = Element<format>;
#pragma unroll
    for (int step = 0; step < key_blocks / 2; ++step) {
        unsigned p[row_blocks][4];
#pragma unroll
        for (int block = 0; block < row_blocks; ++block) {
            const float(&left)[4] = scores[block][2 * step];
            const float(&right)[4] = scores[block][2 * step + 1];
            p[block][0] = T::pair(left[0], left[1]);
            p[block][1] = T::pair(left[2], left[3]);
            p[block][2] = T::pair(right[0], right[1]);
            p[block][3] = T::pair(right[2], right[3]);
        }
#pragma unroll
        for (int pair = 0; pair < dim_blocks / 2; ++pair) {
            unsigned v[4];
            ldmatrix_x4_transposed(v, values + step * 16 * mma_row_bytes(head_dim) + pair * 32);
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
                mma_m16n8k16<format>(out[block][2 * pair], p[block], v[0], v[1]);
                mma_m16n8k16<format>(out[block][2 * pair + 1], p[block], v[2], v[3]);
            }
        }
    }
}

}  // namespace jitney
