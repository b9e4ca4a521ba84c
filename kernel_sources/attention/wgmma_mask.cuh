// The mask as a consumer of attn_prefill_wgmma reads it: the bits of its lane's two rows, straight
// from memory, a step ahead.
#pragma once

#include "attention/mask_tile.cuh"
#include "attention/wgmma_unseen.cuh"
#include "common/numeric.cuh"

namespace jitney {

template <class C, bool mask = C::mask != 0>
struct WgmmaMask {
    static constexpr int kWords = C::tile_n / kMaskGroupKeys;
    static constexpr int kKeyBlocks = C::tile_n / 8;

    const unsigned* rows[2];
    unsigned bits[2][kWords];

    // `row` is the lane's first row of the tile of rows, the other is 8 rows behind. Rows past the
    // last query take its mask; nobody asks for their result.
    JITNEY_DEVICE void begin(const AttentionParams& params, const WgmmaNote<C>& note, int row) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const PackedRow packed = packed_row(params, note.request, note.group,
                                                min(row + half * 8, note.last_row(params.group)));
            rows[half] =
                mask_row(params.mask_bits, note.request.batch, packed.head, packed.position);
        }
    }

    JITNEY_DEVICE void load(const AttentionParams& params, const WgmmaNote<C>& note, int key) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            load_mask_words(bits[half], params.mask_bits, rows[half], key, note.request.kv_len);
    }

    // Drops the scores of keys that are not kept.
    JITNEY_DEVICE void apply(float (&scores)[kKeyBlocks][4], int lane) const {
        unsigned all = kAllLanes;
#pragma unroll
        for (int word = 0; word < kWords; ++word)
            all &= bits[0][word] & bits[1][word];
        if (__all_sync(kAllLanes, all == kAllLanes)) return;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int block = 0; block < kKeyBlocks; ++block) {
                const unsigned lane_bits = bits[half][block / 4] >> 2 * (lane % 4);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& score = scores[block][2 * half + i];
                    if ((lane_bits & 1u << (block % 4 * 8 + i)) == 0) score = -infinity();
                }
            }
        }
    }
};

template <class C>
struct WgmmaMask<C, false> {
    JITNEY_DEVICE void begin(const AttentionParams&, const WgmmaNote<C>&, int) {}
    JITNEY_DEVICE void load(const AttentionParams&, const WgmmaNote<C>&, int) {}
    template <class Scores>
    JITNEY_DEVICE void apply(Scores&, int) const {}
};

}  // namespace jitney
