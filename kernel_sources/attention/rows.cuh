// Packed query rows. The query heads that share a KV head are packed into one dimension with the
// query positions, row = position * group + head, so that one block serves them all and K and V
// stream once a group.
#pragma once

#include "attention/request.cuh"

namespace jitney {

struct PackedRow {
    int position;  // of the query in its request
    int head;      // of the query, over all heads
    bool valid;    // the row belongs to a query
};

JITNEY_DEVICE PackedRow packed_row(const AttentionParams& params, const Request& request,
                                   int kv_head, int row) {
    const int position = row / params.group;
    return {position, kv_head * params.group + (row - position * params.group),
            position < request.q_len};
}

JITNEY_DEVICE long long offset_of(const AttentionStrides& strides, int batch, int row, int head) {
    return batch * strides.batch + row * strides.row + head * strides.head;
}

// Of a query row in q, out or lse.
JITNEY_DEVICE long long query_offset_of(const AttentionStrides& strides, const Request& request,
                                        const PackedRow& row) {
    return offset_of(strides, request.batch, request.first_query + row.position, row.head);
}

// The keys [first, end) that a query sees before any mask. Causal attention is aligned at the
// bottom right: the last query sees all keys. A window counts from the query's own place.
struct KeyRange {
    int first;
    int end;
};

template <class C>
JITNEY_DEVICE KeyRange visible_keys(const AttentionParams& params, const Request& request,
                                    int position) {
    KeyRange range = {0, request.kv_len};
    const int place = position + request.query_offset();
    if constexpr (C::causal != 0) range.end = min(range.end, place + 1);
    if constexpr (C::window != 0) {
        if (params.window_right >= 0 && C::causal == 0) {
            range.end =
                static_cast<int>(min(static_cast<long long>(range.end),
                                     static_cast<long long>(place) + params.window_right + 1));
        }
        if (params.window_left >= 0) {
            range.first =
                static_cast<int>(max(0ll, static_cast<long long>(place) - params.window_left));
        }
    }
    range.end = max(range.end, 0);
    range.first = min(range.first, range.end);
    return range;
}

// The keys that a run of rows sees between them, and those that every one of them sees.
struct TileKeys {
    KeyRange any;
    KeyRange every;
};

template <class C>
JITNEY_DEVICE TileKeys tile_keys(const AttentionParams& params, const Request& request,
                                 int first_row, int last_row) {
    // Both ends move forward with the position.
    const KeyRange first = visible_keys<C>(params, request, first_row / params.group);
    const KeyRange last = visible_keys<C>(params, request, last_row / params.group);
    return {{first.first, last.end}, {last.first, first.end}};
}

}  // namespace jitney
