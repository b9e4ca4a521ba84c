// How blocks that share the K of one tile add up what they have: each sends its sums to those
// blocks of its cluster that go on with them, a share of the columns each, and these add the parts
// in the order of K. The result does not depend on who comes first.
#pragma once

#include "common/vector.cuh"
#include "fp8/gemm_wgmma_memory.cuh"

namespace jitney {

template <class C>
struct Fp8WgmmaMerge {
    using Memory = Fp8WgmmaMemory<C>;
    static constexpr Fp8WgmmaTiles kTiles = Memory::kTiles;
    static constexpr int kOwners = kTiles.owners();
    static constexpr int kBlocks = kTiles.v / 8;
    static constexpr int kShare = kBlocks / kOwners;  // blocks of 8 columns
    static constexpr int kThreads = kTiles.consumers() * kFp8WarpgroupThreads;
    static constexpr int kPartBytes = kShare * kThreads * 16;

    int rank = static_cast<int>(blockIdx.x) % C::splits;

    JITNEY_DEVICE static int thread() {
        return static_cast<int>(threadIdx.x) - kFp8WarpgroupThreads;
    }

    JITNEY_DEVICE void send(const float (&sums)[kBlocks][4]) const {
        const SharedAddress mine =
            Memory::at(kTiles.merge_at() + rank * kPartBytes + thread() * 16);
#pragma unroll
        for (int owner = 0; owner < kOwners; ++owner) {
            const SharedAddress to = address_in_block(mine, static_cast<unsigned>(owner));
            const SharedAddress full =
                address_in_block(Memory::parts_full(), static_cast<unsigned>(owner));
#pragma unroll
            for (int block = 0; block < kShare; ++block)
                store_in_cluster(to + block * kThreads * 16, full, sums[owner * kShare + block]);
        }
    }

    JITNEY_DEVICE void receive(float (&share)[kShare][4]) const {
        barrier_wait(Memory::parts_full(), 0);
        const char* const from = shared_memory() + kTiles.merge_at() + thread() * 16;
#pragma unroll
        for (int block = 0; block < kShare; ++block) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                share[block][e] = 0.0f;
        }
#pragma unroll
        for (int split = 0; split < C::splits; ++split) {
#pragma unroll
            for (int block = 0; block < kShare; ++block) {
                const auto part = load_vector<4>(reinterpret_cast<const float*>(
                    from + split * kPartBytes + block * kThreads * 16));
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    share[block][e] += part.items[e];
            }
        }
    }
};

}  // namespace jitney
