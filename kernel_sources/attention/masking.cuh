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

template <class C>
JITNEY_DEVICE RowLimits row_limits(const AttentionParams& params, const Request& request,
                                   int kv_head, int row) {
    const PackedRow packed = packed_row(params, request, kv_head, row);
    RowLimits limits = {{0, 0}, nullptr};
    if (packed.valid) limits.keys = visible_keys<C>(params, request, packed.position);
    if constexpr (C::mask != 0) {
        limits.mask = params.mask +
                      offset_of(params.mask_strides, request.batch, packed.position, packed.head);
    }
    return limits;
}

template <class C>
JITNEY_DEVICE bool keeps(const RowLimits& limits, int key) {
    if (key >= limits.keys.end) return false;
    if (C::window != 0 && key < limits.keys.first) return false;
    if constexpr (C::mask != 0) return limits.mask[key] != 0;
    return true;
}

// Whether a tile of keys needs masking at all.
template <class C>
JITNEY_DEVICE bool needs_mask(const KeyRange& seen_by_every_row, int key, int keys) {
    return C::mask != 0 || key + keys > seen_by_every_row.end ||
           (C::window != 0 && key < seen_by_every_row.first);
}

// Masks the scores of one 16-row block of an mma. `key` is the lane's first key in the tile.
template <class C, int key_blocks>
JITNEY_DEVICE void mask_scores(float (&scores)[key_blocks][4], const RowLimits (&limits)[2],
                               int key) {
#pragma unroll
    for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!keeps<C>(limits[i / 2], key + block * 8 + i % 2)) scores[block][i] = -infinity();
        }
    }
}

}  // namespace jitney
