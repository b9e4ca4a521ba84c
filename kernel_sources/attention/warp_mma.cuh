// The two products of attention for one warp: S = Q K^T and O += P V, over tiles in shared memory.
// The fragments of the next step are loaded before the current ones are multiplied.
#pragma once

#include "attention/tile_loads.cuh"
#include "common/element.cuh"
#include "common/mma.cuh"

namespace jitney {

// scores += q * k^T over the whole head dimension and all keys of a tile. `keys` is the lane's
// address (lane_address_columns) in the tile's first 16 keys; load_q(fragments, step) gives the
// rows' 16-wide step of the head dimension.
// `q_buffers` is 2 to load the next step's rows ahead, 1 to save their registers.
template <int format, int head_dim, int q_buffers, int row_blocks, int key_blocks, class LoadQ>
JITNEY_DEVICE void multiply_keys(float (&scores)[row_blocks][key_blocks][4], SharedAddress keys,
                                 const LoadQ& load_q) {
    constexpr int pairs = key_blocks / 2;
    constexpr int steps = mma_dim(head_dim) / 16;
    const auto load_k = [keys](unsigned(&k)[4], int step, int pair) {
        ldmatrix_x4(k, keys + pair * 16 * mma_row_bytes(head_dim) + step * 32);
    };
    unsigned q[q_buffers][row_blocks][4];
    unsigned k[2][4];
    load_q(q[0], 0);
    load_k(k[0], 0, 0);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        if (q_buffers == 1 && step > 0) load_q(q[0], step);
#pragma unroll
        for (int pair = 0; pair < pairs; ++pair) {
            const int now = (step * pairs + pair) % 2;
            if (pair + 1 < pairs) {
                load_k(k[1 - now], step, pair + 1);
            } else if (step + 1 < steps) {
                load_k(k[1 - now], step + 1, 0);
            }
            if (q_buffers == 2 && pair == 0 && step + 1 < steps) {
                load_q(q[(step + 1) % 2], step + 1);
            }
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
                mma_m16n8k16<format>(scores[block][2 * pair], q[step % q_buffers][block], k[now][0],
                                     k[now][1]);
                mma_m16n8k16<format>(scores[block][2 * pair + 1], q[step % q_buffers][block],
                                     k[now][2], k[now][3]);
            }
        }
    }
}

// Weights as operand a: those of 16 keys, from the accumulators that hold their scores.
template <int format, int row_blocks, int key_blocks>
JITNEY_DEVICE void pack_weights(unsigned (&p)[row_blocks][4],
                                const float (&scores)[row_blocks][key_blocks][4], int step) {
    using T = Element<format>;
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
        const float(&left)[4] = scores[block][2 * step];
        const float(&right)[4] = scores[block][2 * step + 1];
        p[block][0] = T::pair(left[0], left[1]);
        p[block][1] = T::pair(left[2], left[3]);
        p[block][2] = T::pair(right[0], right[1]);
        p[block][3] = T::pair(right[2], right[3]);
    }
}

// out += p * v over `steps` times 16 keys. `values` is the lane's address (lane_address_rows) in
// the first of them; load_p(fragments, step) gives the rows' weights of 16 keys.
template <int format, int head_dim, int steps, int row_blocks, int dim_blocks, class LoadP>
JITNEY_DEVICE void multiply_values(float (&out)[row_blocks][dim_blocks][4], SharedAddress values,
                                   const LoadP& load_p) {
    constexpr int pairs = dim_blocks / 2;
    const auto load_v = [values](unsigned(&v)[4], int step, int pair) {
        ldmatrix_x4_transposed(v, values + step * 16 * mma_row_bytes(head_dim) + pair * 32);
    };
    unsigned v[2][4];
    load_v(v[0], 0, 0);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        unsigned p[row_blocks][4];
        load_p(p, step);
#pragma unroll
        for (int pair = 0; pair < pairs; ++pair) {
            const int now = (step * pairs + pair) % 2;
            if (pair + 1 < pairs) {
                load_v(v[1 - now], step, pair + 1);
            } else if (step + 1 < steps) {
                load_v(v[1 - now], step + 1, 0);
            }
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
                mma_m16n8k16<format>(out[block][2 * pair], p[block], v[now][0], v[now][1]);
                mma_m16n8k16<format>(out[block][2 * pair + 1], p[block], v[now][2], v[now][3]);
            }
        }
    }
}

// The same with the weights of one warp's own scores.
template <int format, int head_dim, int row_blocks, int key_blocks, int dim_blocks>
JITNEY_DEVICE void multiply_values(float (&out)[row_blocks][dim_blocks][4],
                                   const float (&scores)[row_blocks][key_blocks][4],
                                   SharedAddress values) {
    multiply_values<format, head_dim, key_blocks / 2>(
        out, values, [&scores](unsigned(&p)[row_blocks][4], int step) {
            pack_weights<format>(p, scores, step);
        });
}

}  // namespace jitney
