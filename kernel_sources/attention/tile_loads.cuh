// Asynchronous loads of tiles of rows into shared memory, 16 bytes a copy, and the order in which
// ldmatrix reads them back.
#pragma once

#include "attention/layout.h"
#include "common/cp_async.cuh"
#include "common/ldmatrix.cuh"

namespace jitney {

// `threads` threads (this one is number `thread`) copy `rows` rows of head_dim 16-bit elements.
// source(row) gives the address of a row, or null for a row that is to be zero; what lies between
// head_dim and its multiple of 16 becomes zero too.
template <int head_dim, int rows, int threads, class Source>
JITNEY_DEVICE void load_tile(SharedAddress tile, int thread, const Source& source) {
    constexpr int chunks = mma_dim(head_dim) / 8;
    constexpr int used_chunks = head_dim / 8;
    constexpr int rows_a_pass = threads / chunks;
    const int first_row = thread / chunks;
    const int chunk = thread - first_row * chunks;
    if (threads % chunks != 0 && first_row >= rows_a_pass) return;
    SharedAddress to = tile + first_row * mma_row_bytes(head_dim) + chunk * 16;
#pragma unroll
    for (int pass = 0; pass < (rows + rows_a_pass - 1) / rows_a_pass; ++pass) {
        const int row = first_row + pass * rows_a_pass;
        if (rows % rows_a_pass != 0 && row >= rows) return;
        const char* from = static_cast<const char*>(source(row));
        const bool valid = from != nullptr && (used_chunks == chunks || chunk < used_chunks);
        cp_async_16(to + pass * rows_a_pass * mma_row_bytes(head_dim),
                    valid ? from + chunk * 16 : source.anywhere(), valid);
    }
}

// Rows [first, first + count) of one head of K or V; rows past `count` are zero and never read.
struct DenseRows {
    const char* base;     // row `first`
    long long row_bytes;  // from row to row
    int count;            // rows that may be read

    JITNEY_DEVICE const void* operator()(int row) const {
        return row < count ? base + row * row_bytes : nullptr;
    }
    // An address that is never read, for copies that only fill with zeros.
    JITNEY_DEVICE const void* anywhere() const { return base; }
};

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
