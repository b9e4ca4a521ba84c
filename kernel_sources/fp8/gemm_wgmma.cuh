// fp8_gemm_wgmma: out[m, n] = a[m, k] b[n, k]^T * scale + bias on Hopper's tensor cores (exactly
// sm_90a). One thread has tiles of A and B copied into a ring in shared memory, warpgroups multiply
// them. Blocks stay and take tile after tile; or those of a cluster share the K of one. Rows
// of A may belong to groups, with a B each.
#pragma once

#include "common/grid_dependency.cuh"
#include "common/register_share.cuh"
#include "fp8/gemm_wgmma_consumer.cuh"
#include "fp8/gemm_wgmma_producer.cuh"

namespace jitney {

template <class C>
__global__ void __launch_bounds__(Fp8WgmmaMemory<C>::kTiles.threads(), 1)
    fp8_gemm_wgmma(const __grid_constant__ Fp8GemmWgmmaParams params) {
    using Memory = Fp8WgmmaMemory<C>;
    constexpr int kThreads = Memory::kTiles.threads();
    if (threadIdx.x == 0) {
        tensor_map_prefetch(&params.u);
        tensor_map_prefetch(&params.v);
        Memory::make_barriers();
    }
    release_next_grid();
    if constexpr (C::splits > 1) {
        __syncwarp();
        cluster_barrier();
    } else {
        __syncthreads();
    }
    wait_for_previous_grid();
    unsigned largest = 0;
    if (warp_index() < 4) {
        if constexpr (Memory::kTiles.consumers() == 2) give_registers<40>();
        if (C::grouped != 0 ? warp_index() == 0 : threadIdx.x == 0)
            Fp8WgmmaProducer<C>{params}.run();
        if (C::scales == kBlockScales && warp_index() == 1)
            Fp8WgmmaScaleCopies<C>{params.gemm}.run();
        __syncwarp();
    } else {
        if constexpr (Memory::kTiles.consumers() == 2) take_registers<232>();
        largest = Fp8WgmmaConsumer<C>(params).run();
    }
    if (Fp8WgmmaMemory<C>::kOutBytes == 1 && params.gemm.amax != nullptr) {
        largest = block_max<kThreads>(largest, Memory::words());
        unsigned result;
        if (threadIdx.x == 0 && merge_amax(params.gemm.amax_counters, largest, gridDim.x, result))
            *params.gemm.amax = __uint_as_float(result);
    }
}

}  // namespace jitney
