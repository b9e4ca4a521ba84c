// fp8_gemm_mma: out[m, n] = op(a)[m, k] op(b)[k, n] * scale + bias on mma.sync, with one scale, or
// those of rows and columns, or of blocks along k.
//
// A block has one tile of the output, or one split of its K. Tiles of A and B run through a ring in
// shared memory, filled `stages` - 1 tiles ahead, with one barrier a tile: it stands before the
// last step of a tile, when all fragments of the tile are in registers already, so that the
// products of that step hide the first fragments of the next tile.
#pragma once

#include "common/grid_dependency.cuh"
#include "fp8/gemm_groups.cuh"
#include "fp8/gemm_output.cuh"

namespace jitney {

template <class C>
struct Fp8Gemm {
    static constexpr Fp8GemmWarps kWarps = fp8_gemm_warps(C::tile_m, C::tile_n, C::unpack != 0);
    static constexpr bool kGrouped = C::grouped != 0;
    static constexpr int kWarpsM = kWarps.m;
    static constexpr int kWarpsN = kWarps.n;
    static constexpr int kWarpsK = kWarps.k;
    static constexpr int kThreads = 32 * kWarps.all();
    static constexpr bool kPressed = C::unaligned != 0 || C::scales == kBlockScales ||
                                     (C::promote != 0 && C::trans_a != 0 && C::trans_b == 0);
    static constexpr int kBlocksAnSm =
        fp8_gemm_blocks_an_sm(C::tile_m, C::tile_n, C::unpack != 0, kPressed);
    static constexpr int kWarpM = C::tile_m / kWarpsM;
    static constexpr int kWarpN = C::tile_n / kWarpsN;
    static constexpr int kFragmentsM = kWarpM / 16;
    static constexpr int kFragmentsN = kWarpN / 16;
    static constexpr int kTileK = fp8_gemm_tile_k(C::tile_m, C::tile_n);
    static constexpr int kSteps = kTileK / 32 / kWarpsK;  // of a warp in a tile
    static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kSteps % 2 == 0);
    static_assert(fp8_gemm_why_not(C::tile_m, C::tile_n, C::unpack != 0, C::promote != 0,
                                   C::scales)[0] == '\0');
    // All that a warp adds up of a tile lies in one block of K and of B's columns.
    static constexpr bool kScalesBlocks = C::scales == kBlockScales;
    static_assert(kFp8ScaleBlock % (kSteps * 32) == 0 && kFp8ScaleBlock % C::tile_n == 0);

    using TileA = Fp8Tile<C::tile_m, kTileK, C::trans_a == 0>;
    using TileB = Fp8Tile<C::tile_n, kTileK, C::trans_b != 0>;
    using Products = Fp8Products<C, kFragmentsM, kFragmentsN>;
    using BlockScales = Fp8MmaBlockScales<C, kFragmentsM, kFragmentsN>;
    using Output = Fp8GemmOutput<C, kFragmentsM, kFragmentsN>;
    static constexpr int kStageBytes = TileA::kBytes + TileB::kBytes;

    // Which tile of the output this block has, and which part of K.
    struct Place {
        int tile;
        int split;
        int first_m;
        int end_m;  // of the group's rows
        int first_n;
        int group = 0;
        int first_k;
        int k;               // that this block adds up
        bool exists = true;  // groups have fewer tiles than there may be blocks

        // Blocks that run at the same time have few rows and columns of tiles among them: `group`
        // tiles of M side by side, column after column.
        JITNEY_DEVICE Place(const Fp8GemmParams& params, int block) {
            tile = block / params.splits;
            split = block - tile * params.splits;
            int number = tile;
            int m_tiles = params.m_tiles;
            first_m = 0;
            end_m = params.m;
            if constexpr (kGrouped) {
                Fp8GroupPlace place{};
                exists = find_fp8_group(params, C::tile_m, tile, place);
                group = place.group;
                first_m = place.first;
                end_m = place.end;
                number = place.tile;
                m_tiles = (end_m - first_m + C::tile_m - 1) / C::tile_m;
            }
            const int strip = params.group * params.n_tiles;
            const int first = number / strip * params.group;
            const int height = kGrouped ? max(min(params.group, m_tiles - first), 1)
                                        : min(params.group, m_tiles - first);
            const int within = number - number / strip * strip;
            const int n = within / height;
            const int m = first + within - n * height;
            first_m += m * C::tile_m;
            first_n = n * C::tile_n;
            const long long from = static_cast<long long>(split) * params.split_tiles * kTileK;
            first_k = static_cast<int>(min(from, static_cast<long long>(params.k)));
            k = static_cast<int>(min(static_cast<long long>(params.split_tiles) * kTileK,
                                     static_cast<long long>(params.k - first_k)));
        }
    };

    template <class Loader, class Tile>
    JITNEY_DEVICE static Loader loader(const Fp8GemmOperand& operand, int side, int first,
                                       const Place& place, const Fp8GemmParams& params) {
        if constexpr (C::unaligned != 0) {
            return Loader(operand, side, first, place.first_k, params.k);
        } else {
            return Loader(operand, side, first, place.first_k);
        }
    }

    // Where a warp stands in the block.
    struct WarpPlace {
        int m = warp_index() % kWarpsM;
        int n = warp_index() / kWarpsM % kWarpsN;
        int k = warp_index() / (kWarpsM * kWarpsN);
    };

    JITNEY_DEVICE static void sum(Products& sums, const Fp8GemmParams& params, const Place& place,
                                  const WarpPlace& warp) {
        using LoaderA = Fp8LoaderOf<TileA>;
        using LoaderB = Fp8LoaderOf<TileB>;
        char* const ring = shared_memory();
        const SharedAddress ring_address = shared_address(ring);
        LoaderA load_a = loader<LoaderA, TileA>(params.a, params.m, place.first_m, place, params);
        Fp8GemmOperand of_b = params.b;
        if constexpr (kGrouped) of_b.data += place.group * params.b_group;
        LoaderB load_b = loader<LoaderB, TileB>(of_b, params.n, place.first_n, place, params);
        const Fp8Fragments<TileA, kFragmentsM, kSteps> fragments_a(warp.m * kWarpM,
                                                                   warp.k * kSteps);
        const Fp8Fragments<TileB, kFragmentsN, kSteps> fragments_b(warp.n * kWarpN,
                                                                   warp.k * kSteps);
        Fp8Fragment a[2][kFragmentsM];
        Fp8Fragment b[2][kFragmentsN];

        const int tiles = (place.k - 1) / kTileK + 1;
        int k_left = place.k;
        int write_stage = 0;
        const auto begin_load = [&] {
            if (k_left > 0) {
                const auto stage = static_cast<unsigned>(write_stage * kStageBytes);
                load_a.begin(ring_address + stage, k_left);
                load_b.begin(ring_address + stage + TileA::kBytes, k_left);
            }
        };
        const auto end_load = [&] {
            if (C::unaligned != 0 && k_left > 0) {
                load_a.end(ring + write_stage * kStageBytes);
                load_b.end(ring + write_stage * kStageBytes + TileA::kBytes);
            }
            cp_async_commit();
            k_left -= kTileK;
            write_stage = write_stage == C::stages - 1 ? 0 : write_stage + 1;
        };
        const auto load_fragments = [&](int buffer, SharedAddress stage, int step) {
#pragma unroll
            for (int f = 0; f < kFragmentsM; ++f)
                fragments_a.load(a[buffer][f], stage, step, f);
#pragma unroll
            for (int f = 0; f < kFragmentsN; ++f)
                fragments_b.load(b[buffer][f], stage + TileA::kBytes, step, f);
        };

#pragma unroll 1
        for (int stage = 0; stage < C::stages - 1; ++stage) {
            begin_load();
            end_load();
        }
        cp_async_wait<C::stages - 2>();
        __syncthreads();
        SharedAddress read_stage = ring_address;
        load_fragments(0, read_stage, 0);
        Products part;
        if constexpr (C::promote != 0) part.clear();
        [[maybe_unused]] BlockScales scales{params, place.first_m + warp.m * kWarpM,
                                            place.first_n + warp.n * kWarpN, place.group};
        [[maybe_unused]] int k = place.first_k + warp.k * kSteps * 32;
#pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
            if constexpr (kScalesBlocks) scales.load(k);
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                if (step == kSteps - 1) {
                    cp_async_wait<C::stages - 2>();
                    __syncthreads();
                    read_stage += kStageBytes;
                    if (read_stage == ring_address + C::stages * kStageBytes)
                        read_stage = ring_address;
                }
                if (step < kSteps - 1 || tile + 1 < tiles)
                    load_fragments((step + 1) % 2, read_stage, (step + 1) % kSteps);
                if (step == 0) begin_load();
                if constexpr (C::promote != 0) {
                    part.multiply(a[step % 2], b[step % 2]);
                } else {
                    sums.multiply(a[step % 2], b[step % 2]);
                }
                if (step == 0) end_load();
            }
            // What the tensor cores add up loses what lies far below the largest product, so that
            // they are given no more than 128 of K.
            if constexpr (kScalesBlocks) {
                scales.add(sums, part);
                part.clear();
                k += kTileK;
            } else if constexpr (C::promote != 0) {
                sums.add(part);
                part.clear();
            }
        }
        // Behind the last tile's barrier nobody reads the ring, and no copy is under way.
    }

    template <class Tile>
    using Fp8LoaderOf = typename Fp8LoaderChoice<Tile, kThreads, C::unaligned != 0>::Type;

    JITNEY_DEVICE static void run(const Fp8GemmParams& params) {
        release_next_grid();
        wait_for_previous_grid();
        Products sums;
        sums.clear();
        if (params.k > 0) {
            const Place first_place(params, static_cast<int>(blockIdx.x));
            if (first_place.exists) sum(sums, params, first_place, WarpPlace());
        }
        // Found anew, because the loop needs all registers.
        const Place place(params, reread_block_index());
        const WarpPlace warp;
        const Output output{params, place.first_m + warp.m * kWarpM,
                            place.first_n + warp.n * kWarpN, place.end_m, place.group};
        // The first of the warps along K goes on with the sums of all.
        const bool writes = warp.k == 0 && place.exists;
        if constexpr (kWarpsK > 1) output.merge_warps(sums, warp.k);
        auto* const flag = reinterpret_cast<unsigned*>(shared_memory());
        if (params.splits > 1) {
            if (!output.merge_splits(sums, place.tile, place.split, writes, flag)) return;
            __syncthreads();  // all have read the flag, where results are staged now
        }
        output.scale_and_bias(sums);
        const bool wants_amax = Output::kFp8 && params.amax != nullptr;
        const unsigned largest = wants_amax && writes ? output.largest(sums) : 0;
        if (writes) output.write(sums, shared_memory() + warp_index() * 16 * Output::kPitch);
        if (wants_amax) {
            __syncthreads();
            output.write_amax(largest, flag);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(Fp8Gemm<C>::kThreads, Fp8Gemm<C>::kBlocksAnSm)
    fp8_gemm_mma(const __grid_constant__ Fp8GemmParams params) {
    Fp8Gemm<C>::run(params);
}

}  // namespace jitney
