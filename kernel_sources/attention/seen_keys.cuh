// Which keys of a tile any row of it sees. The value of one that none sees may be anything, NaN and
// infinity too, which a weight of 0 does not take out of the product: it has to be zero there.
#pragma once

#include "attention/layout.h"
#include "common/warp.cuh"

namespace jitney {

// Bit i of word w: key number 32 * w + i of the tile.
template <int keys>
struct SeenKeys {
    static constexpr int kWords = (keys + 31) / 32;
    unsigned words[kWords];

    JITNEY_DEVICE bool has(int key) const {
        unsigned word = words[0];
#pragma unroll
        for (int i = 1; i < kWords; ++i) {
            if (key >= i * 32) word = words[i];
        }
        return (word >> static_cast<unsigned>(key) % 32 & 1u) != 0;
    }
    JITNEY_DEVICE bool all() const {
        bool every = true;
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            const int left = keys - 32 * i;
            every = every && words[i] == (left >= 32 ? kAllLanes : (1u << left % 32) - 1);
        }
        return every;
    }
    JITNEY_DEVICE bool any() const {
        unsigned bits = 0;
#pragma unroll
        for (int i = 0; i < kWords; ++i)
            bits |= words[i];
        return bits != 0;
    }
};

// Those to which one of a warp's 16 rows gives a weight: without one a key counts as not seen.
template <int key_blocks>
JITNEY_DEVICE SeenKeys<key_blocks * 8> weighted_keys(const float (&weights)[key_blocks][4],
                                                     int lane) {
    SeenKeys<key_blocks * 8> seen;
#pragma unroll
    for (int word = 0; word < seen.kWords; ++word) {
        unsigned bits = 0;
#pragma unroll
        for (int block = word * 4; block < key_blocks && block < word * 4 + 4; ++block) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const bool any = weights[block][i] != 0.0f || weights[block][i + 2] != 0.0f;
                bits |= (any ? 1u : 0u) << (block % 4 * 8 + i);
            }
        }
        seen.words[word] = warp_or(bits << 2 * (lane % 4));
    }
    return seen;
}

// Makes the rows of a tile zero whose keys are not seen. The warp has the tile for itself.
template <int head_dim, int keys>
JITNEY_DEVICE void clear_unseen(char* tile, const SeenKeys<keys>& seen, int lane) {
    constexpr int chunks = mma_dim(head_dim) / 8;
#pragma unroll
    for (int word = 0; word < seen.kWords; ++word) {
        constexpr unsigned all = keys % 32 == 0 ? kAllLanes : (1u << keys % 32) - 1;
        unsigned unseen = ~seen.words[word] & (word == seen.kWords - 1 ? all : kAllLanes);
#pragma unroll 1
        for (; unseen != 0; unseen &= unseen - 1) {
            const int row = word * 32 + __ffs(static_cast<int>(unseen)) - 1;
            if (lane < chunks) {
                *reinterpret_cast<uint4*>(tile + row * mma_row_bytes(head_dim) + lane * 16) =
                    uint4{0, 0, 0, 0};
            }
        }
    }
    __syncwarp();  // the rows are zero
}

}  // namespace jitney
