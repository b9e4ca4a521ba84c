// The mask of a tile of rows and keys as attn_prefill_mma reads it: the words that attn_mask_bits
// wrote come with the tile's keys, and its summary tells which tiles no row keeps a key of.
#pragma once

#include "attention/layout.h"
#include "attention/mask_bits.h"
#include "attention/rows.cuh"
#include "attention/seen_keys.cuh"
#include "common/cp_async.cuh"
#include "common/numeric.cuh"
#include "common/warp.cuh"

namespace jitney {

constexpr int kMaskSegmentKeys = kMaskSegmentSpans * kMaskSpanKeys;

// The band of a row, over all heads and requests; rows are the mask's own.
JITNEY_DEVICE long long mask_band(const MaskBits& mask, int batch, int head, int row) {
    const long long heads = (mask.batch == 1 ? 0ll : batch) * mask.heads;
    const long long bands = (heads + (mask.heads == 1 ? 0 : head)) * mask_bands(mask.rows);
    return bands + (mask.rows == 1 ? 0 : row) / kMaskBandRows;
}

// Where a row's first word is; the others follow mask_band_stride() words apart.
JITNEY_DEVICE const unsigned* mask_row(const MaskBits& mask, int batch, int head, int row) {
    const int stride = mask_band_stride(mask.rows);
    return mask.words + mask_band(mask, batch, head, row) * mask_groups(mask.keys) * stride +
           (mask.rows == 1 ? 0 : row) % kMaskBandRows;
}

// The bits of the word that begins at `first` whose keys are in a range.
JITNEY_DEVICE unsigned bits_within(const KeyRange& keys, int first) {
    const int before = min(max(keys.first - first, 0), kMaskGroupKeys);
    const int count = min(max(keys.end - first, 0), kMaskGroupKeys);
    const auto below = [](int bits) { return static_cast<unsigned>((1ull << bits) - 1); };
    return below(count) & ~below(before);
}

template <class C>
struct MaskTile {
    static constexpr int kWords = mask_tile_words(C::tile_n);  // of a row
    static constexpr int kSides = prefill_mma_sides(C::head_dim, C::tile_n);
    static constexpr int kLaneWords = mask_tile_words(C::tile_n / kSides);
    // A lane's keys begin in the middle of a word: tiles may, or the keys of the second side do.
    static constexpr bool kHalfWords = C::tile_n / kSides % kMaskGroupKeys != 0;

    char* memory;  // the words of each row, then the summary of a segment of keys

    JITNEY_DEVICE unsigned* words(unsigned row) const {
        return reinterpret_cast<unsigned*>(memory) + row * kWords;
    }
    JITNEY_DEVICE unsigned* summary() const { return words(C::tile_m); }

    // Starts the copies of a tile's words. row_words(row) is where the first word of a row is,
    // `stride` how far it is to the next; nothing is read behind the word of the last key before
    // `end`.
    template <class RowWords>
    JITNEY_DEVICE void load(int key, int end, int stride, const RowWords& row_words) const {
        constexpr unsigned turns = kAttentionThreads / C::tile_m;
        const unsigned turn = turns == 1 ? 0 : threadIdx.x / C::tile_m;
        const unsigned row = threadIdx.x - turn * C::tile_m;
        const unsigned group = static_cast<unsigned>(key) / kMaskGroupKeys;
        const unsigned* from = row_words(row);
#pragma unroll
        for (unsigned first = 0; first < kWords; first += turns) {
            const unsigned word = first + turn;
            if (kWords % turns != 0 && word >= kWords) continue;
            cp_async_4(shared_address(words(row) + word),
                       from + static_cast<long long>(group + word) * stride,
                       static_cast<int>((group + word) * kMaskGroupKeys) < end);
        }
    }

    // Takes the summary of the rows' bands from the segment's first key on into shared memory, one
    // word a thread, as far as `end`.
    JITNEY_DEVICE void load_summary(const AttentionParams& params, const Request& request,
                                    int kv_head, int first_row, int last_row, int segment,
                                    int end) const {
        const MaskBits& mask = params.mask_bits;
        const int thread = static_cast<int>(threadIdx.x);
        const int span = segment * kMaskSegmentSpans + thread;
        const bool one_row = mask.rows == 1;
        const bool one_head = mask.heads == 1;
        const int first_band = one_row ? 0 : first_row / params.group / kMaskBandRows;
        const int last_band = one_row ? 0 : last_row / params.group / kMaskBandRows;
        const int first_head = one_head ? 0 : kv_head * params.group;
        const int heads = one_head ? 1 : params.group;
        unsigned groups = 0;
        if (span < (end + kMaskSpanKeys - 1) / kMaskSpanKeys) {
            for (int head = first_head; head < first_head + heads; ++head) {
                const unsigned* from =
                    mask.summary +
                    mask_band(mask, request.batch, head, first_row / params.group) *
                        mask_spans(mask.keys) +
                    span;
#pragma unroll 4
                for (int band = first_band; band <= last_band; ++band) {
                    groups |= *from;
                    from += mask_spans(mask.keys);
                }
            }
        }
        summary()[thread] = groups;
    }

    // The first key from `from` on, within its span, at which a tile should begin; `from` is in the
    // segment that was loaded last. Negative: there is none.
    JITNEY_DEVICE int next_in_span(int from) const {
        const unsigned group = static_cast<unsigned>(from) / kMaskGroupKeys;
        const unsigned groups = summary()[group / 32 % kMaskSegmentSpans] >> group % 32;
        if (groups == 0) return -1;
        const int ahead = __ffs(static_cast<int>(groups)) - 1;
        return max(from, (static_cast<int>(group) + ahead) * kMaskGroupKeys);
    }

    // Which keys of the tile at `key` a row of it keeps, of those that it sees: all where `whole`,
    // else keys_of(row). Each warp finds out for itself, from the words of all rows.
    template <class KeysOf>
    JITNEY_DEVICE SeenKeys<C::tile_n> seen_keys(int key, bool whole, const KeysOf& keys_of) const {
        const int first_key = static_cast<int>(static_cast<unsigned>(key) & ~(kMaskGroupKeys - 1u));
        unsigned groups[kWords] = {};
        // The first rows are enough where they keep every key together, as those of most masks do.
        bool every = false;
#pragma unroll 1
        for (int first_row = 0; first_row < C::tile_m && !every; first_row += kWarpSize) {
            const unsigned row = static_cast<unsigned>(first_row) + threadIdx.x % kWarpSize;
            const KeyRange keys = whole ? KeyRange{} : keys_of(static_cast<int>(row));
            every = true;
#pragma unroll
            for (int word = 0; word < kWords; ++word) {
                unsigned bits = words(row)[word];
                if (!whole) bits &= bits_within(keys, first_key + word * kMaskGroupKeys);
                groups[word] |= warp_or(bits);
                every = every && groups[word] == kAllLanes;
            }
        }
        SeenKeys<C::tile_n> seen;
#pragma unroll
        for (int word = 0; word < seen.kWords; ++word) {
            seen.words[word] = groups[word];
            if constexpr (C::tile_n % kMaskGroupKeys != 0) {
                // The tile may begin in the middle of a word.
                const bool middle = key != first_key;
                const unsigned next = word + 1 < kWords ? groups[word + 1] : 0;
                if (middle) seen.words[word] = groups[word] >> 16 | next << 16;
            }
        }
        return seen;
    }

    // The bits of a row that belong to the lane, its first key being bit 0 of the first word.
    // `place` is that key's place behind the first of the row's words.
    JITNEY_DEVICE void lane_bits(unsigned (&bits)[kLaneWords], int row, int place) const {
        const int first = kSides == 1 ? 0 : place / kMaskGroupKeys;
        const int shift = place - first * kMaskGroupKeys;
        const unsigned* from = words(static_cast<unsigned>(row)) + first;
#pragma unroll
        for (int word = 0; word < kLaneWords; ++word) {
            bits[word] = from[word] >> shift;
            if (kHalfWords && first + word + 1 < kWords)
                bits[word] |= from[word + 1] << 1 << (31 - shift);
        }
    }

    // The bits of a word that the lane's keys of a tile of `blocks` times 8 keys have.
    static constexpr unsigned bits_used(int blocks) {
        return blocks >= 4 ? 0x03030303u : 0x03030303u & ((1u << 8 * blocks) - 1);
    }

    // Drops the scores of keys that are not kept. `row` is the lane's first in each 16-row block of
    // the tile at `key`, `first` its first key behind that one.
    template <int row_blocks, int key_blocks>
    JITNEY_DEVICE void apply(float (&scores)[row_blocks][key_blocks][4], int row, int key,
                             int first) const {
        const int place =
            first + (C::tile_n % kMaskGroupKeys == 0
                         ? 0
                         : static_cast<int>(static_cast<unsigned>(key) % kMaskGroupKeys));
        unsigned dropped = 0;
#pragma unroll
        for (int half = 0; half < 2 * row_blocks; ++half) {
            unsigned bits[kLaneWords];
            lane_bits(bits, row + half * 8, place);
#pragma unroll
            for (int word = 0; word < kLaneWords; ++word)
                dropped |= ~bits[word] & bits_used(key_blocks - word * 4);
        }
        if (!__any_sync(kAllLanes, dropped != 0)) return;
#pragma unroll
        for (int half = 0; half < 2 * row_blocks; ++half) {
            unsigned bits[kLaneWords];
            lane_bits(bits, row + half * 8, place);
#pragma unroll
            for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& score = scores[half / 2][block][half % 2 * 2 + i];
                    if ((bits[block / 4] >> (block % 4 * 8 + i) & 1u) == 0) score = -infinity();
                }
            }
        }
    }
};

}  // namespace jitney
