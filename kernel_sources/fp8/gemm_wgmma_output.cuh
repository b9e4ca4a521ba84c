// From the accumulators of fp8_gemm_wgmma to memory: scale, bias, the output's format, and the
// largest magnitude of what went there.
#pragma once

#include "common/amax.cuh"
#include "common/element.cuh"
#include "fp8/gemm_wgmma_staging.cuh"

namespace jitney {

// Of tiles of 64 times parts_u rows of U and `columns` of V a warpgroup.
template <class C, int parts_u, int columns>
struct Fp8WgmmaOutput {
    using Memory = Fp8WgmmaMemory<C>;
    using Staging = Fp8WgmmaStaging<C>;
    static constexpr bool kFp8 = Staging::kFp8;
    static constexpr bool kSides = C::scales == kSideScales;
    static constexpr int kLaneColumns = (columns + kWarpSize - 1) / kWarpSize;

    const Fp8GemmParams& params;
    const Fp8GemmScales& scales;
    Staging staging;
    float scale;
    float multiplier;
    unsigned largest = 0;
    int first_u = 0;  // of the tile
    int first_v = 0;
    int group = 0;
    // The scales of this thread's two rows of U, and of the columns of V that are its lane's number
    // and every 32 on: asked for before the products, and needed behind them.
    float of_u[parts_u][2];
    float of_v[kLaneColumns];

    JITNEY_DEVICE Fp8WgmmaOutput(const Fp8GemmWgmmaParams& p, int number)
        : params(p.gemm),
          scales(p.gemm.scales),
          staging{p.gemm, &p.out, number},
          scale(C::scales == kOneScale ? *p.gemm.scale : 1.0f),
          multiplier(kFp8 ? *p.gemm.multiplier : 1.0f) {}

    JITNEY_DEVICE void begin(const Fp8WgmmaWork<C>& work, int u, int v) {
        first_u = u;
        first_v = v;
        if constexpr (Fp8WgmmaWork<C>::kGrouped) {
            group = work.group;
            staging.end_of_group = work.end_m;
        }
        if constexpr (kSides) {
#pragma unroll
            for (int part = 0; part < parts_u; ++part)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    of_u[part][half] = scale_of<Memory::kSwap>(row_of_u(part) + half * 8);
#pragma unroll
            for (int i = 0; i < kLaneColumns; ++i)
                of_v[i] = scale_of<!Memory::kSwap>(v + i * kWarpSize + lane());
        }
    }
    JITNEY_DEVICE int row_of_u(int part) const {
        return first_u + part * kFp8WgmmaRows + Staging::warp() * 16 + lane() / 4;
    }
    template <bool of_b>
    JITNEY_DEVICE float scale_of(int place) const {
        if constexpr (of_b) {
            return scales.b[min(place, params.n - 1) * scales.b_column + group * scales.b_group];
        }
        return scales.a[min(place, params.m - 1) * scales.a_row];
    }
    // Of column `column` and the lane's place in it, counted from the tile's first.
    JITNEY_DEVICE float scale_of_column(int column, int e) const {
        return __shfl_sync(kAllLanes, of_v[column / kWarpSize],
                           column % kWarpSize + lane() % 4 * 2 + e);
    }
    // Sums of 8 columns from `column` on.
    JITNEY_DEVICE void apply_scales(float (&sums)[4], int part, int column) const {
        if constexpr (kSides) {
            const float of_columns[2] = {scale_of_column(column, 0), scale_of_column(column, 1)};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sums[e] *= of_u[part][e / 2] * of_columns[e % 2];
        } else if constexpr (C::scales == kOneScale) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sums[e] *= scale;
        }
    }

    JITNEY_DEVICE static int lane() {
        return Staging::lane();
    }

    // body(the bias as pointer to what it is made of), where there is one.
    template <class Body>
    JITNEY_DEVICE void with_bias(const Body& body) const {
        if (params.bias == nullptr) return;
        if (params.bias_format == kFp32) {
            body(static_cast<const Element<kFp32>*>(params.bias));
        } else {
            body(static_cast<const Element<kBf16>*>(params.bias));
        }
    }
    // Columns past the last have results that nobody sees.
    template <class T>
    JITNEY_DEVICE float value_at(const T* bias, int column) const {
        const T* const of_group =
            Fp8WgmmaWork<C>::kGrouped ? bias + group * params.bias_group : bias;
        return of_group[min(column, params.n - 1)].value();
    }

    JITNEY_DEVICE void see(float value, int row, int column) {
        if (row < staging.end_m() && column < params.n)
            largest = max(largest, magnitude_bits(value));
    }

    // The sums of the tile's 64 rows of U number `part`, with `blocks` times 8 columns of V from
    // `column` on.
    template <int blocks>
    JITNEY_DEVICE void write(float (&sums)[blocks][4], int part, int column) {
        if constexpr (Memory::kSwap) {
            write_swapped(sums, part, column);
        } else {
            write_rows(sums, part, column);
        }
    }

    // The results of a warp's sixteen rows, a piece of them at a time.
    template <int blocks>
    JITNEY_DEVICE void write_rows(float (&sums)[blocks][4], int part, int first_column) {
        const int first_m = first_u + part * kFp8WgmmaRows + Staging::warp() * 16;
        const int first_n = first_v + first_column;
#pragma unroll
        for (int first = 0; first < blocks; first += Staging::kPieceBlocks) {
#pragma unroll
            for (int i = first; i < first + Staging::kPieceBlocks && i < blocks; ++i)
                apply_scales(sums[i], part, first_column + i * 8);
            finish_piece(sums, first, first_m + lane() / 4, first_n + lane() % 4 * 2);
            staging.write_piece(sums, first, first_m, first_n + first * 8);
        }
    }

    // Scaled sums of the blocks of a piece, from `first` on, to results. This thread's are of `row`
    // and 8 rows on, and of `column`, the next, and every 8 on.
    template <int blocks>
    JITNEY_DEVICE void finish_piece(float (&sums)[blocks][4], int first, int row, int column) {
        constexpr int count = Staging::kPieceBlocks;
        with_bias([&](const auto* bias) {
#pragma unroll
            for (int i = first; i < first + count && i < blocks; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[i][e] += value_at(bias, column + i * 8 + e % 2);
            }
        });
        if constexpr (kFp8) {
#pragma unroll
            for (int i = first; i < first + count && i < blocks; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if (params.amax != nullptr)
                        see(sums[i][e], row + e / 2 * 8, column + i * 8 + e % 2);
                    sums[i][e] *= multiplier;
                }
            }
        }
    }

    // Rows of U are columns of the output: what the warpgroup has of sixteen rows at a time.
    template <int blocks>
    JITNEY_DEVICE void write_swapped(float (&sums)[blocks][4], int part, int first_row) {
        const int first_n = first_u + part * kFp8WgmmaRows;
        const int first_m = first_v + first_row;
        const int column = row_of_u(part);
        float biases[2] = {};
        with_bias([&](const auto* bias) {
            biases[0] = value_at(bias, column);
            biases[1] = value_at(bias, column + 8);
        });
#pragma unroll
        for (int block = 0; block < blocks; block += 2) {
            if (first_m + block * 8 >= staging.end_m()) break;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float(&c)[4] = sums[block + i];
                const int row = first_m + (block + i) * 8 + lane() % 4 * 2;
                apply_scales(c, part, first_row + (block + i) * 8);
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    c[e] += biases[e / 2];
                    if constexpr (kFp8) {
                        if (params.amax != nullptr) see(c[e], row + e % 2, column + e / 2 * 8);
                        c[e] *= multiplier;
                    }
                }
            }
            staging.write_swapped(sums[block], sums[block + 1], first_m + block * 8, first_n);
        }
    }
};

}  // namespace jitney
