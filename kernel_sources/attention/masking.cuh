// Which scores count: keys past what a query sees, and keys that the caller's mask drops, become
// -inf, so that they add exactly nothing.
#pragma once

#include "attention/rows.cuh"
#include "common/numeric.cuh"

namespace jitney {

// One query row as masking sees it.
struct RowLimits {
    int visible;                // keys [0, visible) may count
    const unsigned char* mask;  // of key 0 in this row, or null
};

template <class C>
JITNEY_DEVICE RowLimits row_limits(const AttentionParams& params, int batch, int kv_head, int row) {
    const PackedRow packed = packed_row(params, kv_head, row);
    RowLimits limits = {packed.valid ? visible_keys<C>(params, packed.position) : 0, nullptr};
    if constexpr (C::mask != 0) {
        limits.mask =
            params.mask + offset_of(params.mask_strides, batch, packed.position, packed.head);
    }
    return limits;
}

template <class C>
JITNEY_DEVICE bool keeps(const RowLimits& limits, int key) {
    if (key >= limits.visible) return false;
    if constexpr (C::mask != 0) return limits.mask[key] != 0;
    return true;
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
