// A mask as bits: what attn_mask_bits makes of the caller's bytes, and attn_prefill_mma reads.
// Shared by host and device.
#pragma once

namespace jitney {

constexpr int kMaskBitsThreads = 256;

// A block of attn_mask_bits takes this many rows and keys: a band and a word of the summary.
constexpr int kMaskBandRows = 32;
constexpr int kMaskGroupKeys = 32;  // of a word of the bits, and of a bit of the summary
constexpr int kMaskSpanKeys = 32 * kMaskGroupKeys;

// The words of a block, so that they leave it in another order, and a summary a warp.
constexpr int kMaskGroupStride = kMaskBandRows + 1;  // words from group to group, odd
constexpr int mask_bits_shared_bytes(int threads) {
    return (kMaskSpanKeys / kMaskGroupKeys * kMaskGroupStride + threads / 32) * 4;
}

// How many there are of so many keys and rows, which may be as many as an int counts.
constexpr int mask_groups(int keys) {
    return keys / kMaskGroupKeys + (keys % kMaskGroupKeys != 0);
}
constexpr int mask_spans(int keys) {
    return keys / kMaskSpanKeys + (keys % kMaskSpanKeys != 0);
}
constexpr int mask_bands(int rows) {
    return rows / kMaskBandRows + (rows % kMaskBandRows != 0);
}

// Words from group to group: the rows of a band, the last one's too.
constexpr int mask_band_stride(int rows) {
    return rows < kMaskBandRows ? rows : kMaskBandRows;
}

}  // namespace jitney
