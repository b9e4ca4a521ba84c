// Tiles of K and V whose rows begin at lines of 128 bytes of shared memory. A copy of cp.async that
// crosses a line costs as much as two, so that there are no gaps between rows; the chunks of 16
// bytes change places within their lines instead, by the row's number, and the eight rows of an
// ldmatrix fall into different banks.
#pragma once

#include "attention/decode_cluster.h"
#include "attention/seen_keys.cuh"
#include "attention/warp_mma.cuh"

namespace jitney {

// The place of chunk number `chunk` of a row of the tile, from the row's beginning on.
JITNEY_DEVICE unsigned line_offset(int row, int chunk) {
    const auto place = static_cast<unsigned>(chunk);
    return (place ^ (static_cast<unsigned>(row) & 7u)) * 16u;
}

// One warp copies a tile, in the way of load_tile_by_warp: `rows` is a multiple of 16.
template <int head_dim, int rows, class Cursor>
JITNEY_DEVICE void load_line_tile(SharedAddress tile, int lane, Cursor cursor) {
    constexpr int chunks = mma_dim(head_dim) / 8;
    constexpr int used_chunks = head_dim / 8;
    constexpr int lanes_a_row = chunks % 8 == 0 ? 8 : (chunks % 4 == 0 ? 4 : 2);
    constexpr int rows_a_pass = 32 / lanes_a_row;
    static_assert(rows % rows_a_pass == 0);
    const int first_row = lane / lanes_a_row;
    const int first_chunk = lane % lanes_a_row;
    cursor.start(first_row);
#pragma unroll
    for (int pass = 0; pass < rows / rows_a_pass; ++pass) {
        const int row = first_row + pass * rows_a_pass;
        const SharedAddress to = tile + row * line_row_bytes(head_dim);
        const char* from = cursor.address() + first_chunk * 16;
        const bool valid = cursor.valid();
#pragma unroll
        for (int chunk = 0; chunk < chunks; chunk += lanes_a_row) {
            const bool used = used_chunks == chunks || first_chunk + chunk < used_chunks;
            cp_async_16(to + line_offset(row, first_chunk + chunk), from + chunk * 16,
                        used && valid);
        }
        cursor.advance(rows_a_pass);
    }
}

// Makes the rows of a tile zero whose keys are not seen. The warp has the tile for itself.
template <int head_dim, int keys>
JITNEY_DEVICE void clear_unseen_lines(char* tile, const SeenKeys<keys>& seen, int lane) {
    constexpr int chunks = line_row_bytes(head_dim) / 16;
#pragma unroll 1
    for (int row = 0; row < keys; ++row) {
        if (seen.has(row) || lane >= chunks) continue;
        *reinterpret_cast<uint4*>(tile + row * line_row_bytes(head_dim) + lane * 16) =
            uint4{0, 0, 0, 0};
    }
    __syncwarp();  // the rows are zero
}

// The addresses at which a lane reads 16 x 16 blocks of a tile.
struct LineReader {
    SharedAddress row;  // the lane's, of the tile's first 16
    unsigned swap;      // the place of the lane's chunk of the first block in its line

    JITNEY_DEVICE LineReader(SharedAddress tile, int row_bytes, int lane_row, int lane_chunk)
        : row(tile + lane_row * row_bytes), swap(line_offset(lane_row, lane_chunk)) {}

    // The address in the block that begins at column 16 * step.
    JITNEY_DEVICE SharedAddress at(int step) const {
        return row + step / 4 * 128 + (swap ^ static_cast<unsigned>(step % 4 * 32));
    }
};

// As operand b whose rows are its columns, and transposed, whose rows are the reduced dimension.
template <int head_dim>
JITNEY_DEVICE LineReader line_columns(SharedAddress tile, int lane) {
    return {tile, line_row_bytes(head_dim), lane / 16 * 8 + lane % 8, lane / 8 % 2};
}
template <int head_dim>
JITNEY_DEVICE LineReader line_rows(SharedAddress tile, int lane) {
    return {tile, line_row_bytes(head_dim), lane % 16, lane / 16};
}

// scores += q * k^T over the whole head dimension and all keys of the tile. The next fragments are
// loaded before the current ones are multiplied.
template <int format, int head_dim, int key_blocks, int steps>
JITNEY_DEVICE void multiply_line_keys(float (&scores)[key_blocks][4], const unsigned (&q)[steps][4],
                                      const LineReader& keys) {
    constexpr int pairs = key_blocks / 2;
    const auto load = [&keys](unsigned(&k)[4], int number) {
        ldmatrix_x4(k, keys.at(number / pairs) + number % pairs * 16 * line_row_bytes(head_dim));
    };
    unsigned k[2][4];
    load(k[0], 0);
#pragma unroll
    for (int number = 0; number < steps * pairs; ++number) {
        const unsigned(&now)[4] = k[number % 2];
        const int step = number / pairs;
        const int pair = number % pairs;
        if (number + 1 < steps * pairs) load(k[(number + 1) % 2], number + 1);
        mma_m16n8k16<format>(scores[2 * pair], q[step], now[0], now[1]);
        mma_m16n8k16<format>(scores[2 * pair + 1], q[step], now[2], now[3]);
    }
}

// out += p * v over all keys of the tile, with the weights in place of their scores.
template <int format, int head_dim, int key_blocks, int dim_blocks>
JITNEY_DEVICE void multiply_line_values(float (&out)[1][dim_blocks][4],
                                        const float (&weights)[1][key_blocks][4],
                                        const LineReader& values) {
    constexpr int pairs = dim_blocks / 2;
    constexpr int steps = key_blocks / 2;
    const auto load = [&values](unsigned(&v)[4], int number) {
        ldmatrix_x4_transposed(
            v, values.at(number % pairs) + number / pairs * 16 * line_row_bytes(head_dim));
    };
    unsigned v[2][4];
    unsigned p[1][4];
    load(v[0], 0);
#pragma unroll
    for (int number = 0; number < steps * pairs; ++number) {
        const unsigned(&now)[4] = v[number % 2];
        const int pair = number % pairs;
        if (pair == 0) pack_weights<format>(p, weights, number / pairs);
        if (number + 1 < steps * pairs) load(v[(number + 1) % 2], number + 1);
        mma_m16n8k16<format>(out[0][2 * pair], p[0], now[0], now[1]);
        mma_m16n8k16<format>(out[0][2 * pair + 1], p[0], now[2], now[3]);
    }
}

}  // namespace jitney
