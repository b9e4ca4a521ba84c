// What fp8_gemm_mma is launched with, and how it lays out shared memory; shared by host and device.
#pragma once

namespace jitney {

struct AmaxCounters;

// One operand as it lies in memory: rows of bytes, of which the elements within a row are
// neighbours. What is not transposed has its rows along M (of A) or K (of B).
struct Fp8GemmOperand {
    const unsigned char* data;
    long long stride;  // bytes from row to row
};

constexpr int kFp8ScaleBlock = 128;  // of k, and of columns of B, that have one scale

// The factors that turn products of codes into products of numbers.
enum Fp8Scales : int {
    kOneScale = 0,     // one number
    kSideScales = 1,   // one, or one a row, of A, and one, or one a column, of B
    kBlockScales = 2,  // along k in blocks of 128: a row of A, and 128 columns of B
};

// The scales of A and B apart; steps are in elements, 0 where one scale serves all.
struct Fp8GemmScales {
    const float* a;
    const float* b;
    long long a_row;
    long long a_block;   // of k
    long long b_column;  // or 128 columns
    long long b_block;
    long long b_group;
};

struct Fp8GemmParams {
    Fp8GemmOperand a;
    Fp8GemmOperand b;
    const float* scale;    // of the product: kOneScale
    Fp8GemmScales scales;  // in its place
    const void* bias;      // [n], or null
    void* out;             // [m, n]
    long long out_stride;
    const float* multiplier;  // of an output in FP8
    float* amax;              // of the output before the multiplier, or null
    float* partials;          // of the splits: [tile, split, tile_m * tile_n]
    unsigned* arrived;        // [tile], with splits
    AmaxCounters* amax_counters;
    int bias_format;  // kBf16 or kFp32
    int m, n, k;
    int m_tiles, n_tiles;
    int group;        // tiles of M that neighbouring blocks share
    int splits;       // of K, among blocks
    int split_tiles;  // tiles of K in one split
    int out_vectors;  // rows of the output begin at multiples of 16 bytes
    // The first row of each group and the end of the last, [groups + 1], if rows of A belong to
    // groups that have a matrix B each.
    const int* group_indptr;
    int groups;
    long long b_group;  // bytes from matrix to matrix
    long long bias_group;
};

// How the warps of a block share its products: along M and N, and along K where a warp's part would
// else be too small to hide the latency of its neighbours. Tiles of 32 columns belong to few rows,
// and have an SM to themselves: as many warps as that takes. Where fragments are unpacked, the
// widest tile has four warps of 64x64, because each unpacked fragment then serves more products,
// and two such blocks on an SM.
struct Fp8GemmWarps {
    int m;
    int n;
    int k;

    constexpr int all() const { return m * n * k; }
};

constexpr Fp8GemmWarps fp8_gemm_warps(int tile_m, int tile_n, bool unpack) {
    if (tile_m * tile_n >= 128 * 128) return {2, unpack ? 2 : 4, 1};
    if (tile_n == 32 && tile_m == 32) return {1, 2, 8};
    if (tile_n == 32 && tile_m > 32) return {tile_m / 32, 1, 4};
    if (tile_m == 64 && tile_n == 128) return {1, 4, 2};
    const int m = tile_m < 64 ? 1 : 2;
    const int n = tile_m >= 64 ? 2 : (tile_n < 64 ? tile_n / 16 : 4);
    return {m, n, 8 / (m * n)};
}

// K of a stage of the ring: at least two steps of 32 for each of the warps along K.
constexpr int fp8_gemm_tile_k(int tile_m, int tile_n) {
    const int warps = fp8_gemm_warps(tile_m, tile_n, true).k;
    return warps > 2 ? 64 * warps : 128;
}

// What the compiler is told of the registers: as many blocks shall fit on an SM. `pressed`: two
// sets of sums of operands that are both transposed or have scales of blocks, or rows that come
// through registers.
constexpr int fp8_gemm_blocks_an_sm(int tile_m, int tile_n, bool unpack, bool pressed) {
    const int warps = fp8_gemm_warps(tile_m, tile_n, unpack).all();
    const int a_warp = tile_m * tile_n / warps;
    const bool four_warps = a_warp >= 64 * 64;
    return pressed || warps > 8 || (a_warp >= 32 * 32 && !four_warps) ? 1 : 2;
}

// Why there is no such kernel; empty where there is.
constexpr const char* fp8_gemm_why_not(int tile_m, int tile_n, bool unpack, bool promote,
                                       int scales) {
    if (scales != kBlockScales) return "";
    if (!promote) return "scales of blocks need promotion";
    const Fp8GemmWarps warps = fp8_gemm_warps(tile_m, tile_n, unpack);
    if (tile_m * tile_n / warps.all() >= 64 * 64) {
        return "scales of blocks need a second set of sums, for which such a tile has no registers";
    }
    return "";
}

constexpr int fp8_gemm_stage_bytes(int tile_m, int tile_n) {
    return (tile_m + tile_n) * fp8_gemm_tile_k(tile_m, tile_n);
}

// The results leave through the memory of the ring: each warp has 16 of its rows at a time there,
// with 16 bytes between them.
constexpr int fp8_gemm_out_pitch(int tile_m, int tile_n, bool unpack, int element_bytes) {
    return tile_n / fp8_gemm_warps(tile_m, tile_n, unpack).n * element_bytes + 16;
}

constexpr int fp8_gemm_shared_bytes(int tile_m, int tile_n, int stages, bool unpack,
                                    int out_bytes) {
    const Fp8GemmWarps warps = fp8_gemm_warps(tile_m, tile_n, unpack);
    const int ring = stages * fp8_gemm_stage_bytes(tile_m, tile_n);
    // There the sums of the warps along K meet before.
    const int parts = (warps.k - 1) * tile_m * tile_n * 4;
    const int out = warps.m * warps.n * 16 * fp8_gemm_out_pitch(tile_m, tile_n, unpack, out_bytes);
    const int after = parts > out ? parts : out;
    return ring > after ? ring : after;
}

}  // namespace jitney
