// attn_prefill_wgmma: attention of tiles of packed query rows over all keys they see, on Hopper's
// tensor cores (exactly sm_90a). One warpgroup has a thread that starts the copies of tiles and
// one that finds out what comes next, the others multiply, 64 rows each. Blocks stay and take tile
// after tile.
#pragma once

#include "attention/wgmma_consumer.cuh"
#include "attention/wgmma_planner.cuh"
#include "attention/wgmma_producer.cuh"
#include "common/register_share.cuh"

namespace jitney {

// Without a head_dim_v of its own V has that of Q and K.
template <class C>
struct WgmmaConstants : C {
    static constexpr int head_dim_v = C::head_dim_v == 0 ? C::head_dim : C::head_dim_v;
};

template <class C>
__global__ void __launch_bounds__(wgmma_threads(C::tile_m), 1)
    attn_prefill_wgmma(const __grid_constant__ PrefillWgmmaParams params) {
    using Constants = WgmmaConstants<C>;
    if (threadIdx.x == 0) WgmmaMemory<Constants>::make_barriers();
    __syncthreads();
    if (warp_index() < 4) {
        give_registers<wgmma_producer_registers(C::tile_m)>();
        if (threadIdx.x == 0) WgmmaProducer<Constants>{params}.run();
        if (threadIdx.x == kWarpSize) WgmmaPlanner<Constants>{params}.run();
    } else {
        take_registers<wgmma_consumer_registers(C::tile_m)>();
        WgmmaConsumer<Constants>(params).run();
    }
}

}  // namespace jitney
