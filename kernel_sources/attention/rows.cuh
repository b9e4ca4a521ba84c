// Packed query rows. The query heads that share a KV head are packed into one dimension with the
// query positions, row = position * group + head, so that one block serves them all and K and V
// stream once a group.
#pragma once

#include "attention/params.h"
#include "common/builtins.cuh"

namespace jitney {

struct PackedRow {
    int position;  // of the query in its request
    int head;      // of the query, over all heads
    bool valid;    // the row belongs to a query
};

JITNEY_DEVICE PackedRow packed_row(const AttentionParams& params, int kv_head, int row) {
    const int position = row / params.group;
    return {position, kv_head * params.group + (row - position * params.group),
            position < params.q_len};
}

JITNEY_DEVICE long long offset_of(const AttentionStrides& strides, int batch, int row, int head) {
    return batch * strides.batch + row * strides.row + head * strides.head;
}

// How many leading keys a query sees before any mask. Causal attention is aligned at the bottom
// right: the last query sees all keys.
template <class C>
JITNEY_DEVICE int visible_keys(const AttentionParams& params, int position) {
    if constexpr (C::causal != 0) {
        const int seen = position + 1 + (params.kv_len - params.q_len);
        return seen < 0 ? 0 : (seen < params.kv_len ? seen : params.kv_len);
    } else {
        return params.kv_len;
    }
}

}  // namespace jitney
