// The thread of fp8_gemm_wgmma that has the tiles of U and V brought into shared memory.
#pragma once

#include "common/tensor_copy.cuh"
#include "fp8/gemm_wgmma_memory.cuh"

namespace jitney {

template <class C>
struct Fp8WgmmaProducer {
    using Memory = Fp8WgmmaMemory<C>;

    const Fp8GemmWgmmaParams& params;

    // By one thread, or by its warp where rows belong to groups.
    JITNEY_DEVICE void run() const {
        const bool copies = !Fp8WgmmaWork<C>::kGrouped || threadIdx.x == 0;
        typename Memory::Ring ring;
        Fp8WgmmaWork<C> work;
        for (bool on = work.first(params.gemm); on; on = work.next(params.gemm)) {
            int k = work.first_k * kFp8WgmmaTileK;
            const int row_of_b = work.row_of_b(params.gemm);
            const int row_of_u = Memory::kSwap ? row_of_b : work.m;
            const int row_of_v = Memory::kSwap ? work.m : row_of_b;
            for (int i = 0; copies && i < work.k_tiles; ++i) {
                const SharedAddress full = Memory::full(ring.stage);
                barrier_wait(Memory::empty_of(full), ring.phase ^ 1);
                barrier_arrive_expecting(full, Memory::kTiles.stage_bytes());
                tensor_load(Memory::u(ring.stage), &params.u, full, k, row_of_u);
                tensor_load(Memory::v(ring.stage), &params.v, full, k, row_of_v);
                k += kFp8WgmmaTileK;
                ring.advance();
            }
        }
    }
};

}  // namespace jitney
