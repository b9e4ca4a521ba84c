// attn_mask_bits: packs the caller's mask into bits, once for all heads and tiles that read it, and
// notes where a band of rows keeps any key at all, so that attention passes over the rest. A block
// takes one band and one span of keys, a lane the 32 keys of one word.
#pragma once

#include "attention/mask_bits.h"
#include "attention/rows.cuh"
#include "common/vector.cuh"
#include "common/warp.cuh"

namespace jitney {

// Bit i: byte i is not zero.
JITNEY_DEVICE unsigned nonzero_bytes(unsigned bytes) {
    unsigned any = bytes | bytes >> 4;
    any |= any >> 2;
    any |= any >> 1;
    return (any & 0x01010101u) * 0x01020408u >> 24;
}

template <class C>
struct MaskPacker {
    static constexpr int kWarps = C::threads / kWarpSize;
    static constexpr int kRowsAWarp = (kMaskBandRows + kWarps - 1) / kWarps;

    const AttentionParams& params;
    const MaskBits& mask;
    int lane;
    int warp;
    int span;
    int band;
    int head;
    int batch;
    int rows;  // that may be read
    int keys;

    JITNEY_DEVICE explicit MaskPacker(const AttentionParams& p)
        : params(p),
          mask(p.mask_bits),
          lane(static_cast<int>(threadIdx.x) % kWarpSize),
          warp(warp_index()) {
        const int block = static_cast<int>(blockIdx.x);
        const int spans = mask_spans(mask.keys);
        const int bands = mask_bands(mask.rows);
        span = block % spans;
        band = block / spans % bands;
        head = block / spans / bands % mask.heads;
        batch = block / spans / bands / mask.heads;
        rows = mask.rows;
        keys = mask.keys;
        // A mask of its own for each request is read as far as the request goes.
        if (mask.batch == params.batch) {
            rows = min(rows, q_len_of(params, batch));
            keys = min(keys, kv_len_of(params, batch));
        }
    }

    // 16 bytes a load. Keys past the last are not read.
    JITNEY_DEVICE static unsigned word_of_vectors(const unsigned char* bytes, int count) {
        unsigned word = 0;
        if (count >= kMaskGroupKeys) {
            const auto* from = reinterpret_cast<const unsigned*>(bytes);
            const auto low = load_vector<4>(from);
            const auto high = load_vector<4>(from + 4);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                word |= nonzero_bytes(low.items[i]) << 4 * i;
                word |= nonzero_bytes(high.items[i]) << (16 + 4 * i);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < count; ++i)
                word |= (bytes[i] != 0 ? 1u : 0u) << i;
        }
        return word;
    }

    // A byte a lane, for rows that begin anywhere; `bytes` and `count`, at least 1, are the warp's.
    JITNEY_DEVICE unsigned word_of_bytes(const unsigned char* bytes, int count) const {
        constexpr int loads = 16;  // on their way at a time
        unsigned word = 0;
#pragma unroll 1
        for (int first = 0; first < 32 && first * kMaskGroupKeys < count; first += loads) {
            unsigned byte[loads];
#pragma unroll
            for (int i = 0; i < loads; ++i)
                byte[i] = bytes[min((first + i) * kMaskGroupKeys + lane, count - 1)];
#pragma unroll
            for (int i = 0; i < loads; ++i) {
                const unsigned group = __ballot_sync(kAllLanes, byte[i] != 0);
                if (lane == first + i) word = group;
            }
        }
        const int valid = count - lane * kMaskGroupKeys;
        return valid >= kMaskGroupKeys ? word : word & ((1u << max(valid, 0)) - 1);
    }

    // The word of a group and a row of the band.
    JITNEY_DEVICE static unsigned& packed(int group, int row) {
        return reinterpret_cast<unsigned*>(shared_memory())[group * kMaskGroupStride + row];
    }
    JITNEY_DEVICE static unsigned& summary_of_warp(int of_warp) {
        return packed(kMaskSpanKeys / kMaskGroupKeys, of_warp);
    }

    // Packs the warp's rows; bit i of the result: one of them keeps a key of group i.
    template <class WordOf>
    JITNEY_DEVICE unsigned pack_rows(const WordOf& word_of) const {
        bool any = false;
#pragma unroll
        for (int i = 0; i < kRowsAWarp; ++i) {
            const int row = i * kWarps + warp;
            if (row >= kMaskBandRows || band * kMaskBandRows + row >= rows) continue;
            const unsigned word =
                word_of(params.mask +
                        offset_of(params.mask_strides, batch, band * kMaskBandRows + row, head));
            packed(lane, row) = word;
            any |= word != 0;
        }
        return __ballot_sync(kAllLanes, any);
    }

    JITNEY_DEVICE void run() const {
        const int first_key = span * kMaskSpanKeys;
        if (band * kMaskBandRows >= rows || first_key >= keys) return;
        const auto places =
            reinterpret_cast<unsigned long long>(params.mask) |
            static_cast<unsigned long long>(params.mask_strides.batch | params.mask_strides.row |
                                            params.mask_strides.head);
        unsigned groups;
        if (places % 16 == 0) {
            const int key = first_key + lane * kMaskGroupKeys;
            groups = pack_rows([&](const unsigned char* bytes) {
                return word_of_vectors(bytes + key, keys - key);
            });
        } else {
            groups = pack_rows([&](const unsigned char* bytes) {
                return word_of_bytes(bytes + first_key, keys - first_key);
            });
        }
        if (lane == 0) summary_of_warp(warp) = groups;
        __syncthreads();  // every warp's rows are packed
        const long long bands =
            (static_cast<long long>(batch) * mask.heads + head) * mask_bands(mask.rows) + band;
        write_words(mask.words + bands * mask_groups(mask.keys) * mask_band_stride(mask.rows));
        if (threadIdx.x != 0) return;
        for (int i = 0; i < kWarps; ++i)
            groups |= summary_of_warp(i);
        mask.summary[bands * mask_spans(mask.keys) + span] = groups;
    }

    // `words` is where the band begins.
    JITNEY_DEVICE void write_words(unsigned* words) const {
        const int stride = mask_band_stride(mask.rows);
        const int first_group = span * 32;
        const int count = min(mask_groups(keys) - first_group, 32) * stride;
        for (int i = static_cast<int>(threadIdx.x); i < count; i += C::threads) {
            const int group = i / stride;
            const int row = i - group * stride;
            if (band * kMaskBandRows + row >= rows) continue;
            words[static_cast<long long>(first_group) * stride + i] = packed(group, row);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(C::threads)
    attn_mask_bits(const __grid_constant__ AttentionParams params) {
    MaskPacker<C>(params).run();
}

}  // namespace jitney
