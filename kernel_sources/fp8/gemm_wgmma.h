// What fp8_gemm_wgmma is launched with, and how it lays out shared memory; shared by host and
// device.
//
// The tensor cores multiply 64 rows of one operand, here U, with the columns of another, V, whose
// number is free. U is A and V is B, or, where A has few rows, U is B and V is A (`swap`).
#pragma once

#include "common/tensor_map.h"
#include "fp8/gemm_params.h"

namespace jitney {

constexpr int kFp8WgmmaTileK = 128;  // of one stage: a row of it is a row of the swizzle
constexpr int kFp8WgmmaRows = 64;    // of U an instruction
constexpr int kFp8WarpgroupThreads = 128;

struct Fp8WgmmaTiles {
    int u = 64;  // rows of U that a block has at a time
    int v = 16;
    int stages = 2;
    bool swap = false;
    int splits = 1;  // blocks of a cluster, which share K
    int out_bytes = 2;
    int pieces =
        0;  // of the output that a warp has under way to the copy engine; 0: it stores itself
    bool block_scales = false;  // those of a stage lie in shared memory
    bool grouped = false;       // rows of A belong to groups

    // Warpgroups that multiply.
    constexpr int consumers() const { return u == kFp8WgmmaRows ? 1 : 2; }
    // What one chain of products makes: 64 rows of U, and so many columns of V. Where sums are
    // promoted there are registers for another part, but not for another tile.
    constexpr int parts_u() const { return u / consumers() / kFp8WgmmaRows; }
    constexpr int part_v(bool promote) const {
        return promote && parts_u() * v > 192 && v > 128 ? v / 2 : v;
    }
    constexpr int parts(bool promote) const { return parts_u() * (v / part_v(promote)); }

    constexpr int threads() const { return (consumers() + 1) * kFp8WarpgroupThreads; }
    constexpr int stage_bytes() const { return (u + v) * kFp8WgmmaTileK; }

    // What the splits send each other: each of `owners` blocks adds up its share of the columns of
    // all splits. A share has a multiple of 16 columns.
    constexpr int owners() const {
        int owners = splits;
        while (v / 16 % owners != 0)
            --owners;
        return owners;
    }
    constexpr int merge_bytes() const { return splits == 1 ? 0 : splits * u * v / owners() * 4; }
    // The results pass through here on their way: 16 rows of 128 bytes a warp, or 16 rows of 64
    // elements a warpgroup.
    constexpr int staging_bytes() const {
        return consumers() *
               (swap ? 16 * 64 * out_bytes : 4 * 16 * 128 * (pieces == 0 ? 1 : pieces));
    }

    constexpr int merge_at() const { return stages * stage_bytes(); }
    constexpr int staging_at() const { return merge_at() + merge_bytes(); }
    constexpr int barriers_at() const { return staging_at() + staging_bytes(); }
    // One for full and one for empty a stage, and one for what the splits send.
    constexpr int words_at() const { return barriers_at() + (2 * stages + 1) * 8; }
    // A word a warp.
    constexpr int scales_at() const { return words_at() + threads() / 32 * 4; }
    // One a row of A, and one for each 128 columns of B.
    constexpr int scale_rows() const { return swap ? v : u; }
    constexpr int scale_columns() const {
        return ((swap ? u : v) + kFp8ScaleBlock - 1) / kFp8ScaleBlock;
    }
    constexpr int scale_bytes() const {
        return block_scales ? (scale_rows() + scale_columns()) * 4 : 0;
    }
    constexpr int bytes() const { return scales_at() + stages * scale_bytes(); }

    // Why there is no such kernel; empty where there is.
    constexpr const char* why_not(bool promote, int scales) const {
        if (u != 64 && u != 128 && u != 256) {
            return "the side of the tile that has 64 rows an instruction, tile_m, or tile_n with "
                   "swap, must be 64, 128 or 256";
        }
        if (parts_u() * v > 256) return "the sums of such a tile are too many for the registers";
        if (part_v(promote) % 16 != 0) return "half the tile must be a multiple of 16";
        if (splits > 1 && parts(promote) > 1) return "splits need a tile of fewer sums";
        if (grouped && (splits > 1 || pieces > 0)) {
            return "rows of groups are added up by one block, and stored by its threads";
        }
        if (pieces > 0 && (swap || piece_columns(promote) * out_bytes % 128 != 0)) {
            return "pieces of the output must have rows of 128 bytes, without swap";
        }
        if (scales == kBlockScales &&
            (!promote || (!swap && kFp8ScaleBlock % part_v(promote) != 0))) {
            return "scales of blocks need promotion, and tiles that lie in one block of B";
        }
        return "";
    }
    constexpr int piece_columns(bool promote) const {
        return splits > 1 ? v / owners() : part_v(promote);
    }
};

struct Fp8GemmWgmmaParams {
    TensorMapBits u;  // [rows, k], boxes of 128 of k
    TensorMapBits v;
    TensorMapBits out;  // [m, n], boxes of 16 rows of 128 bytes
    Fp8GemmParams gemm;
};

}  // namespace jitney
