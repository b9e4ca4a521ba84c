// How what the tensor cores made of 128 of K is added to the sums of a warpgroup: as it is, or
// times the scales of these 128.
#pragma once

#include "fp8/gemm_wgmma_memory.cuh"

namespace jitney {

// Of parts of 64 rows of U and `blocks` times 8 columns of V, parts_u times parts_v.
template <class C, int parts_u, int parts_v, int blocks>
struct Fp8WgmmaBlockScales {
    static constexpr bool kScales = C::scales == kBlockScales;
    static constexpr bool kSwap = C::swap != 0;

    static constexpr int kA = kSwap ? blocks * 2 * parts_v : 2 * parts_u;
    static constexpr int kB = kSwap ? parts_u : parts_v;

    const Fp8GemmWgmmaParams& params;
    int u;
    int v;
    int k;  // the next block
    float a[kScales ? kA : 1];
    float b[kScales ? kB : 1];
    float next_a[kScales ? kA : 1];
    float next_b[kScales ? kB : 1];

    JITNEY_DEVICE Fp8WgmmaBlockScales(const Fp8GemmWgmmaParams& p, int first_u, int first_v,
                                      int first_k)
        : params(p), u(first_u), v(first_v), k(first_k) {
        load();
    }

    JITNEY_DEVICE void load() {
        if constexpr (kScales) {
            const Fp8GemmScales& s = params.gemm.scales;
            const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
            const int warp = static_cast<int>(threadIdx.x) % kFp8WarpgroupThreads / kWarpSize;
            const float* const from_a = s.a + k * s.a_block;
            const float* const from_b = s.b + k * s.b_block;
#pragma unroll
            for (int i = 0; i < kA; ++i) {
                const int row = kSwap ? v + i / 2 * 8 + lane % 4 * 2 + i % 2
                                      : u + i / 2 * 64 + warp * 16 + lane / 4 + i % 2 * 8;
                next_a[i] = from_a[min(row, params.gemm.m - 1) * s.a_row];
            }
#pragma unroll
            for (int i = 0; i < kB; ++i) {
                const int column = kSwap ? u + i * 64 : v + i * blocks * 8;
                next_b[i] = from_b[min(column, params.gemm.n - 1) / 128 * s.b_column];
            }
            ++k;
        }
    }

    // To the next block of K; those behind it are asked for, and are there when they are needed.
    JITNEY_DEVICE void advance(bool more) {
        if constexpr (kScales) {
#pragma unroll
            for (int i = 0; i < kA; ++i)
                a[i] = next_a[i];
#pragma unroll
            for (int i = 0; i < kB; ++i)
                b[i] = next_b[i];
            if (more) load();
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
                    sums[block][e] += part[block][e] * (a[i] * b[kSwap ? part_u : part_v]);
                } else {
                    sums[block][e] += part[block][e];
                }
            }
        }
    }
};

}  // namespace jitney
