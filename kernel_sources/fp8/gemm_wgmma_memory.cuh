// What a block of fp8_gemm_wgmma keeps in shared memory, and which tiles of the output it has.
#pragma once

#include "common/cluster.cuh"
#include "common/fp8.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/ring_place.cuh"
#include "common/warp.cuh"
#include "fp8/gemm_groups.cuh"
#include "fp8/gemm_wgmma.h"

namespace jitney {

template <class C>
struct Fp8WgmmaMemory {
    static constexpr bool kSwap = C::swap != 0;
    static constexpr int kOutBytes =
        C::out == kFp32 ? 4 : (C::out == kFp16 || C::out == kBf16 ? 2 : 1);
    static constexpr Fp8WgmmaTiles kTiles = {kSwap ? C::tile_n : C::tile_m,
                                             kSwap ? C::tile_m : C::tile_n,
                                             C::stages,
                                             kSwap,
                                             C::splits,
                                             kOutBytes,
                                             C::pieces,
                                             C::scales == kBlockScales,
                                             C::grouped != 0};
    static constexpr int kUBytes = kTiles.u * kFp8WgmmaTileK;
    static constexpr int kVBytes = kTiles.v * kFp8WgmmaTileK;
    static constexpr int kWarps = 4;  // of a warpgroup
    using Ring = RingPlace<C::stages>;

    JITNEY_DEVICE static SharedAddress at(int offset) {
        return shared_address(shared_memory()) + static_cast<unsigned>(offset);
    }
    JITNEY_DEVICE static SharedAddress u(int stage) { return at(stage * kTiles.stage_bytes()); }
    JITNEY_DEVICE static SharedAddress v(int stage) { return u(stage) + kUBytes; }
    JITNEY_DEVICE static SharedAddress full(int stage) {
        return at(kTiles.barriers_at() + stage * 2 * kBarrierBytes);
    }
    JITNEY_DEVICE static SharedAddress empty_of(SharedAddress full) { return full + kBarrierBytes; }
    JITNEY_DEVICE static SharedAddress scales(int stage) {
        return at(kTiles.scales_at() + stage * kTiles.scale_bytes());
    }
    JITNEY_DEVICE static SharedAddress parts_full() { return full(C::stages); }
    JITNEY_DEVICE static unsigned* words() {
        return reinterpret_cast<unsigned*>(shared_memory() + kTiles.words_at());
    }

    // By one thread; a barrier of the cluster follows.
    JITNEY_DEVICE static void make_barriers() {
        for (int stage = 0; stage < C::stages; ++stage) {
            barrier_make(full(stage), C::scales == kBlockScales ? 1 + kWarpSize : 1);
            barrier_make(empty_of(full(stage)), kWarps * kTiles.consumers());
        }
        // What all splits send is announced at once.
        if (C::splits > 1) barrier_make(parts_full(), 1);
        fence_made_barriers();
        if (C::splits > 1) barrier_arrive_expecting(parts_full(), kTiles.merge_bytes());
    }
};

// A tile of the output, and the blocks of K that this block adds up.
template <class C>
struct Fp8WgmmaWork {
    using Memory = Fp8WgmmaMemory<C>;
    static constexpr bool kGrouped = C::grouped != 0;

    int number;
    int m;  // the first row and column
    int n;
    int group;    // of the rows, where they belong to groups
    int end_m;    // the end of the group's rows
    int first_k;  // in tiles of K
    int k_tiles;

    // Blocks that run at the same time have few rows and columns of tiles among them: `group`
    // tiles of M side by side, column after column. Where rows belong to groups, all lanes of a
    // warp ask together.
    JITNEY_DEVICE bool find(const Fp8GemmParams& p, int tile) {
        number = tile;
        int m_tiles = p.m_tiles;
        int first_m = 0;
        group = 0;
        end_m = p.m;
        if constexpr (kGrouped) {
            Fp8GroupPlace place{};
            if (!find_fp8_group(p, C::tile_m, tile, place)) return false;
            tile = place.tile;
            group = place.group;
            first_m = place.first;
            end_m = place.end;
            m_tiles = (end_m - first_m + C::tile_m - 1) / C::tile_m;
        } else if (tile >= m_tiles * p.n_tiles) {
            return false;
        }
        const int strip = p.group * p.n_tiles;
        const int strips = tile / strip;
        const int first = strips * p.group;
        const int height = min(p.group, m_tiles - first);
        const int within = tile - strips * strip;
        const int column = within / height;
        const int row = first + within - column * height;
        m = first_m + row * C::tile_m;
        n = column * C::tile_n;
        const int rank = static_cast<int>(blockIdx.x) % C::splits;
        first_k = C::splits > 1 ? rank * p.split_tiles : 0;
        const int all = (p.k + kFp8WgmmaTileK - 1) / kFp8WgmmaTileK;
        k_tiles = C::splits > 1 ? min(p.split_tiles, all - first_k) : all;
        return true;
    }
    JITNEY_DEVICE bool first(const Fp8GemmParams& p) {
        return find(p, static_cast<int>(blockIdx.x) / C::splits);
    }
    // Splits have one tile.
    JITNEY_DEVICE bool next(const Fp8GemmParams& p) {
        return C::splits == 1 && find(p, number + static_cast<int>(gridDim.x) / C::splits);
    }
    JITNEY_DEVICE int u() const { return Memory::kSwap ? n : m; }
    JITNEY_DEVICE int v() const { return Memory::kSwap ? m : n; }
    // In B as the copy engine sees it: the matrices of all groups are one below the other.
    JITNEY_DEVICE int row_of_b(const Fp8GemmParams& p) const {
        return kGrouped ? group * p.n + n : n;
    }
};

}  // namespace jitney
