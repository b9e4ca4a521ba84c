// Asynchronous loads of tiles of rows into shared memory, 16 bytes a copy, and the order in which
// ldmatrix reads them back.
#pragma once

#include "attention/layout.h"
#include "common/cp_async.cuh"
#include "common/ldmatrix.cuh"

namespace jitney {

// `threads` threads (this one is number `thread`) copy `rows` rows of head_dim 16-bit elements.
// The cursor walks over the rows that this thread takes: start(row), then advance(rows); address()
// is where the row begins, and where valid() is false nothing is read and the row becomes zero.
// What lies between head_dim and its multiple of 16 becomes zero too. All threads call the cursor
// alike, so that it may ask other lanes.
template <int head_dim, int rows, int threads, class Cursor>
JITNEY_DEVICE void load_tile(SharedAddress tile, int thread, Cursor cursor) {
    constexpr int chunks = mma_dim(head_dim) / 8;
    constexpr int used_chunks = head_dim / 8;
    constexpr int rows_a_pass = threads / chunks;
    const int first_row = thread / chunks;
    const int chunk = thread - first_row * chunks;
    const bool busy = threads % chunks == 0 || first_row < rows_a_pass;
    const bool used = used_chunks == chunks || chunk < used_chunks;
    const SharedAddress to = tile + first_row * mma_row_bytes(head_dim) + chunk * 16;
    cursor.start(first_row);
#pragma unroll
    for (int pass = 0; pass < (rows + rows_a_pass - 1) / rows_a_pass; ++pass) {
        const char* from = cursor.address() + chunk * 16;
        const bool inside =
            busy && (rows % rows_a_pass == 0 || first_row + pass * rows_a_pass < rows);
        if (inside) {
            cp_async_16(to + pass * rows_a_pass * mma_row_bytes(head_dim), from,
                        used && cursor.valid());
        }
        cursor.advance(rows_a_pass);
    }
}

// The same where one warp copies the tile: a row is shared by few lanes, so that a lane has few
// rows to ask the cursor for, whose other pieces lie at fixed distances. `rows` is a multiple
// of 16.
template <int head_dim, int rows, class Cursor>
JITNEY_DEVICE void load_tile_by_warp(SharedAddress tile, int lane, Cursor cursor) {
    constexpr int chunks = mma_dim(head_dim) / 8;
    constexpr int used_chunks = head_dim / 8;
    constexpr int lanes_a_row = chunks % 8 == 0 ? 8 : (chunks % 4 == 0 ? 4 : 2);
    constexpr int rows_a_pass = 32 / lanes_a_row;
    static_assert(rows % rows_a_pass == 0);
    const int first_row = lane / lanes_a_row;
    const int first_chunk = lane % lanes_a_row;
    const SharedAddress to = tile + first_row * mma_row_bytes(head_dim) + first_chunk * 16;
    cursor.start(first_row);
#pragma unroll
    for (int pass = 0; pass < rows / rows_a_pass; ++pass) {
        const char* from = cursor.address() + first_chunk * 16;
        const bool valid = cursor.valid();
#pragma unroll
        for (int chunk = 0; chunk < chunks; chunk += lanes_a_row) {
            const bool used = used_chunks == chunks || first_chunk + chunk < used_chunks;
            cp_async_16(to + pass * rows_a_pass * mma_row_bytes(head_dim) + chunk * 16,
                        from + chunk * 16, used && valid);
        }
        cursor.advance(rows_a_pass);
    }
}

// The address at which this lane reads a 16x16 block for operand a of an mma, or transposed for
// operand b, whose rows are the reduced dimension.
JITNEY_DEVICE SharedAddress lane_address_rows(SharedAddress block, int row_bytes, int lane) {
    return block + (lane % 16) * row_bytes + (lane / 16) * 16;
}

// The address at which this lane reads a 16x16 block for operand b, whose rows are its columns.
JITNEY_DEVICE SharedAddress lane_address_columns(SharedAddress block, int row_bytes, int lane) {
    return block + (lane / 16 * 8 + lane % 8) * row_bytes + (lane / 8 % 2) * 16;
}

}  // namespace jitney
