// Which scores count: keys that a query does not see, and keys that the caller's mask drops, become
// -inf, so that they add exactly nothing.
#pragma once

#include "attention/rows.cuh"
#include "common/numeric.cuh"

namespace jitney {

// One query row as masking sees it.
struct RowLimits {
    KeyRange keys;              // that may count
    const unsigned char* mask;  // of key 0 in this row, or null
};

// The keys of a row of the tile that may count, before the caller's mask; of a row past the last
// query none.
template <class C>
JITNEY_DEVICE KeyRange row_keys(const AttentionParams& params, const Request& request,
                                const PackedRow& row) {
    return row.valid ? visible_keys<C>(params, request, row.position) : KeyRange{0, 0};
}

template <class C>
JITNEY_DEVICE RowLimits row_limits(const AttentionParams& params, const Request& request,
                                   int kv_head, int row) {
    const PackedRow packed = packed_row(params, request, kv_head, row);
    RowLimits limits = {row_keys<C>(params, request, packed), nullptr};
    if constexpr (C::mask != 0) {
        limits.mask = params.mask +
                      offset_of(params.mask_strides, request.batch, packed.position, packed.head);
    }
    return limits;
}

template <class C>
JITNEY_DEVICE bool lies_in(const KeyRange& keys, int key) {
    if (key >= keys.end) return false;
    return C::window == 0 || key >= keys.first;
}

template <class C>
JITNEY_DEVICE bool keeps(const RowLimits& limits, int key) {
    if (!lies_in<C>(limits.keys, key)) return false;
    if constexpr (C::mask != 0) return limits.mask[key] != 0;
    return true;
}

// Whether not every row sees a whole tile of keys.
template <class C>
JITNEY_DEVICE bool leaves_range(const KeyRange& seen_by_every_row, int key, int keys) {
    return key + keys > seen_by_every_row.end || (C::window != 0 && key < seen_by_every_row.first);
}

// Whether a tile of keys needs masking at all, where the caller's mask is read key by key.
template <class C>
JITNEY_DEVICE bool needs_mask(const KeyRange& seen_by_every_row, int key, int keys) {
    return C::mask != 0 || leaves_range<C>(seen_by_every_row, key, keys);
}

// Masks the scores of one 16-row block of an mma. `key` is the lane's first key in the tile;
// keep(half, key) tells of each of the lane's two rows whether a key counts.
template <int key_blocks, class Keep>
JITNEY_DEVICE void mask_scores(float (&scores)[key_blocks][4], int key, const Keep& keep) {
#pragma unroll
    for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!keep(i / 2, key + block * 8 + i % 2)) scores[block][i] = -infinity();
        }
    }
}

}  // namespace jitney
