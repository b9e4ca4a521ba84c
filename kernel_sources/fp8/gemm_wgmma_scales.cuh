// Scales of blocks of K in fp8_gemm_wgmma: a warp beside the producer brings those of each stage
// into shared memory, and what the tensor cores made of the stage is multiplied by them where it is
// added to a warpgroup's sums.
#pragma once

#include "common/cp_async.cuh"
#include "common/wgmma.cuh"
#include "fp8/gemm_wgmma_memory.cuh"

namespace jitney {

// The warp that copies them. Each lane arrives at the stage's barrier when its copies have landed.
template <class C>
struct Fp8WgmmaScaleCopies {
    using Memory = Fp8WgmmaMemory<C>;

    const Fp8GemmParams& params;

    // Those of a tile's rows of A and columns of B with one block of K. Past the last row or column
    // those of the last are taken: nobody sees what they are for.
    JITNEY_DEVICE void copy(const Fp8WgmmaWork<C>& work, int block, SharedAddress to) const {
        const Fp8GemmScales& scales = params.scales;
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        const float* const of_a = scales.a + block * scales.a_block;
        const float* const of_b = scales.b + block * scales.b_block + work.group * scales.b_group;
#pragma unroll
        for (int row = lane; row < C::tile_m; row += kWarpSize)
            cp_async_4(to + row * 4, of_a + min(work.m + row, params.m - 1) * scales.a_row, true);
        if (lane < Memory::kTiles.scale_columns()) {
            const int column = min(work.n + lane * kFp8ScaleBlock, params.n - 1) / kFp8ScaleBlock;
            cp_async_4(to + (C::tile_m + lane) * 4, of_b + column * scales.b_column, true);
        }
    }

    JITNEY_DEVICE void run() const {
        typename Memory::Ring ring;
        Fp8WgmmaWork<C> work;
        for (bool on = work.first(params); on; on = work.next(params)) {
            for (int i = 0; i < work.k_tiles; ++i) {
                const SharedAddress full = Memory::full(ring.stage);
                barrier_wait(Memory::empty_of(full), ring.phase ^ 1);
                copy(work, work.first_k + i, Memory::scales(ring.stage));
                barrier_arrive_after_copies(full);
                ring.advance();
            }
        }
    }
};

// Those that a thread needs of a stage, for parts of 64 rows of U and `blocks` times 8 columns of
// V, parts_u times parts_v.
template <class C, int parts_u, int parts_v, int blocks>
struct Fp8WgmmaBlockScales {
    using Memory = Fp8WgmmaMemory<C>;
    static constexpr bool kScales = C::scales == kBlockScales;
    static constexpr bool kSwap = C::swap != 0;
    static constexpr int kA = kSwap ? blocks * 2 * parts_v : 2 * parts_u;
    static constexpr int kB = kSwap ? 1 : parts_v;

    float a[kScales ? kA : 1];
    float b[kScales ? kB : 1];

    // `row` is the warpgroup's first row of U in the tile.
    JITNEY_DEVICE void load(int stage, int row) {
        if constexpr (kScales) {
            const float* const from =
                reinterpret_cast<const float*>(shared_memory() + Memory::kTiles.scales_at() +
                                               stage * Memory::kTiles.scale_bytes());
            const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
            const int warp = static_cast<int>(threadIdx.x) % kFp8WarpgroupThreads / kWarpSize;
#pragma unroll
            for (int i = 0; i < kA; ++i) {
                a[i] = from[kSwap ? i / 2 * 8 + lane % 4 * 2 + i % 2
                                  : row + i / 2 * 64 + warp * 16 + lane / 4 + i % 2 * 8];
            }
#pragma unroll
            for (int i = 0; i < kB; ++i)
                b[i] = from[C::tile_m + i * (blocks * 8) / kFp8ScaleBlock];
        }
    }

    // Behind the wait for the products.
    JITNEY_DEVICE void settle() {
        if constexpr (kScales) {
#pragma unroll
            for (int i = 0; i < kA; ++i)
                use_from_here(a[i]);
#pragma unroll
            for (int i = 0; i < kB; ++i)
                use_from_here(b[i]);
        }
    }

    JITNEY_DEVICE void add(float (&sums)[blocks][4], const float (&part)[blocks][4], int part_u,
                           int part_v) const {
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                if constexpr (kScales) {
                    const int i =
                        kSwap ? (part_v * blocks + block) * 2 + e % 2 : part_u * 2 + e / 2;
                    sums[block][e] += part[block][e] * (a[i] * b[kSwap ? 0 : part_v]);
                } else {
                    sums[block][e] += part[block][e];
                }
            }
        }
    }
};

}  // namespace jitney
