// A warpgroup of fp8_gemm_wgmma that multiplies.
#pragma once

#include "common/wgmma_fp8.cuh"
#include "fp8/gemm_wgmma_memory.cuh"
#include "fp8/gemm_wgmma_merge.cuh"
#include "fp8/gemm_wgmma_output.cuh"
#include "fp8/gemm_wgmma_scales.cuh"

namespace jitney {

template <class C>
struct Fp8WgmmaConsumer {
    using Memory = Fp8WgmmaMemory<C>;
    static constexpr Fp8WgmmaTiles kTiles = Memory::kTiles;
    static constexpr bool kPromotes = C::promote != 0;
    static constexpr int kFormatU = Memory::kSwap ? C::b : C::a;
    static constexpr int kFormatV = Memory::kSwap ? C::a : C::b;

    static constexpr int kRows = kTiles.u / kTiles.consumers();  // of U
    static constexpr int kPartsU = kTiles.parts_u();
    static constexpr int kPartV = kTiles.part_v(kPromotes);
    static constexpr int kPartsV = kTiles.v / kPartV;
    static constexpr int kParts = kPartsU * kPartsV;
    static constexpr int kBlocks = kPartV / 8;
    static_assert(kTiles.why_not(kPromotes, C::scales)[0] == '\0');
    // Registers for two sets of sums beside those that they are promoted to.
    using Scales = Fp8WgmmaBlockScales<C, kPartsU, kPartsV, kBlocks>;
    static constexpr bool kTwoSets =
        kPromotes && kParts == 1 && kPartV <= 128 && (!Scales::kScales || Scales::kA <= 16);
    static constexpr int kSteps = kFp8WgmmaTileK / 32;

    using Part = float[kBlocks][4];

    const Fp8GemmWgmmaParams& params;
    int consumer;
    typename Memory::Ring ring;

    JITNEY_DEVICE explicit Fp8WgmmaConsumer(const Fp8GemmWgmmaParams& p)
        : params(p), consumer(warp_index() / 4 - 1) {}

    // This warp has read the stage.
    JITNEY_DEVICE static void release(int stage) {
        if constexpr (Scales::kScales) __syncwarp();  // each lane its scales
        if (threadIdx.x % kWarpSize == 0) barrier_arrive(Memory::empty_of(Memory::full(stage)));
    }

    // Hands over the products of a part with one stage.
    JITNEY_DEVICE void start(Part& sums, int part, int stage, bool adds) const {
        const int row = consumer * kRows + part / kPartsV * kFp8WgmmaRows;
        const int column = part % kPartsV * kPartV;
        const WgmmaOperand u = wgmma_operand(Memory::u(stage) + row * kFp8WgmmaTileK, 0);
        const WgmmaOperand v = wgmma_operand(Memory::v(stage) + column * kFp8WgmmaTileK, 0);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            wgmma_fp8<kFormatU, kFormatV>(sums, wgmma_operand_at(u, step * 32),
                                          wgmma_operand_at(v, step * 32), adds || step > 0);
        }
    }

    // The products of a stage run while those of the next are handed over.
    JITNEY_DEVICE void add_up_fast(Part (&sums)[kParts], int k_tiles) {
        int before = 0;
        clear(sums);
#pragma unroll 1
        for (int i = 0; i < k_tiles; ++i) {
            barrier_wait(Memory::full(ring.stage), ring.phase);
            wgmma_begin();
#pragma unroll
            for (int part = 0; part < kParts; ++part)
                start(sums[part], part, ring.stage, true);
            wgmma_commit();
            if (i > 0) {
                wgmma_wait<1>();
                release(before);
            }
            before = ring.stage;
            ring.advance();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int part = 0; part < kParts; ++part)
            wgmma_settle(sums[part]);
        release(before);
    }

    JITNEY_DEVICE static void clear(Part (&sums)[kParts]) {
#pragma unroll
        for (int part = 0; part < kParts; ++part)
#pragma unroll
            for (int block = 0; block < kBlocks; ++block)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[part][block][e] = 0.0f;
    }

    // What the tensor cores add up loses what lies far below the largest product, so that they are
    // given no more than 128 of K. While one warpgroup adds, the products of the other run.
    JITNEY_DEVICE void add_up_promoting(Part (&sums)[kParts], int k_tiles) {
        clear(sums);
        Part some;
        Scales scales;
#pragma unroll 1
        for (int i = 0; i < k_tiles; ++i) {
            barrier_wait(Memory::full(ring.stage), ring.phase);
            scales.load(ring.stage, consumer * kRows);
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
                wgmma_begin();
                start(some, part, ring.stage, false);
                wgmma_commit();
                wgmma_wait<0>();
                if (part == kParts - 1) release(ring.stage);
                wgmma_settle(some);
                if (part == 0) scales.settle();
                scales.add(sums[part], some, part / kPartsV, part % kPartsV);
            }
            ring.advance();
        }
    }

    // As above with two parts at hand: the products of the next stage run while those of the last
    // are added, within one warpgroup.
    JITNEY_DEVICE void add_up_in_two_sets(Part (&sums)[kParts], int k_tiles) {
        Part some[2];
        Scales scales[2];
        const auto begin = [&](int set) {
            barrier_wait(Memory::full(ring.stage), ring.phase);
            scales[set].load(ring.stage, consumer * kRows);
            wgmma_begin();
            start(some[set], 0, ring.stage, false);
            wgmma_commit();
        };
        const auto add = [&](int set) {
            wgmma_settle(some[set]);
            scales[set].settle();
            scales[set].add(sums[0], some[set], 0, 0);
        };
        clear(sums);
        begin(0);
        int i = 1;
#pragma unroll 1
        for (; i + 1 < k_tiles; i += 2) {
            int before = ring.stage;
            ring.advance();
            begin(1);
            wgmma_wait<1>();
            release(before);
            add(0);
            before = ring.stage;
            ring.advance();
            begin(0);
            wgmma_wait<1>();
            release(before);
            add(1);
        }
        int before = ring.stage;
        ring.advance();
        if (i < k_tiles) {
            begin(1);
            wgmma_wait<1>();
            release(before);
            add(0);
            before = ring.stage;
            ring.advance();
            wgmma_wait<0>();
            release(before);
            add(1);
        } else {
            wgmma_wait<0>();
            release(before);
            add(0);
        }
    }

    // Returns the largest magnitude among the results of this thread, where it is wanted.
    JITNEY_DEVICE unsigned run() {
        using Merge = Fp8WgmmaMerge<C>;
        const Merge merge;
        constexpr int kColumns = C::splits > 1 ? Merge::kShare * 8 : kTiles.v;
        Fp8WgmmaOutput<C, kPartsU, kColumns> output(params, consumer);
        Fp8WgmmaWork<C> work;
        for (bool on = work.first(params.gemm); on; on = work.next(params.gemm)) {
            const int first_u = work.u() + consumer * kRows;
            output.begin(work, first_u,
                         work.v() + (C::splits > 1 ? merge.rank * Merge::kShare * 8 : 0));
            Part sums[kParts];
            if constexpr (kTwoSets) {
                add_up_in_two_sets(sums, work.k_tiles);
            } else if constexpr (kPromotes) {
                add_up_promoting(sums, work.k_tiles);
            } else {
                add_up_fast(sums, work.k_tiles);
            }
            if constexpr (C::splits > 1) {
                merge.send(sums[0]);
                if (merge.rank < Merge::kOwners) {
                    float share[Merge::kShare][4];
                    merge.receive(share);
                    output.write(share, 0, 0);
                }
            } else {
#pragma unroll
                for (int part = 0; part < kParts; ++part)
                    output.write(sums[part], part / kPartsV, part % kPartsV * kPartV);
            }
        }
        output.staging.finish();
        return output.largest;
    }
};

}  // namespace jitney
