// attn_prefill_wgmma: attention of tiles of packed query rows over all keys they see, on Hopper's
// tensor cores (exactly sm_90a). One warpgroup has a thread that starts the copies of tiles and
// one that finds out what comes next, the others multiply, 64 rows each. Blocks stay and take tile
// after tile.
#pragma once

#include "attention/wgmma_consumer.cuh"
#include "attention/wgmma_pages.cuh"
#include "attention/wgmma_planner.cuh"
#include "attention/wgmma_producer.cuh"
#include "attention/wgmma_unseen.cuh"
#include "common/register_share.cuh"

namespace jitney {

// Without a head_dim_v of its own V has that of Q and K.
template <class C>
constexpr int kHeadDimV = C::head_dim;
template <class C>
requires requires {
    C::head_dim_v;
}
constexpr int kHeadDimV<C> = C::head_dim_v;

template <class C>
struct WgmmaConstants : C {
    static constexpr int head_dim_v = kHeadDimV<C>;
};

// Whether rows of K and V are gathered.
template <class C>
JITNEY_DEVICE bool gathers(const PrefillWgmmaParams& params) {
    return C::kv == kPagedKv && wgmma_can_gather(C::tile_m) && params.box_keys == 0;
}

// By the first warpgroup: its first warp copies, the second plans, and the others gather what does
// not come in boxes; or, with a mask, one looks at the values that do.
template <class C>
JITNEY_DEVICE void bring(const PrefillWgmmaParams& params) {
    const int warp = warp_index();
    if (warp == 1) {
        WgmmaPlanner<C>{params}.run();
        return;
    }
    if constexpr (C::mask != 0) {
        if (warp == 2 && !gathers<C>(params)) {
            WgmmaCleaner<C>{params}.run();
            return;
        }
    }
    if constexpr (C::kv == kPagedKv) {
        if (gathers<C>(params)) {
            if (threadIdx.x == 0) {
                WgmmaQueries<C> queries{params};
                bring_tiles<C>(queries);
            } else if (warp >= 2) {
                WgmmaGatherer<C> rows(params, warp - 2);
                bring_tiles<C>(rows);
                rows.end();
            }
        } else if (warp == 0) {
            WgmmaBoxes<C, false> keys(params);
            bring_tiles<C>(keys);
        } else if (warp == 3) {
            WgmmaBoxes<C, true> values(params);
            bring_tiles<C>(values);
        }
    } else if (threadIdx.x == 0) {
        WgmmaProducer<C> tiles(params);
        bring_tiles<C>(tiles);
    }
}

template <class C>
__global__ void __launch_bounds__(wgmma_threads(C::tile_m), 1)
    attn_prefill_wgmma(const __grid_constant__ PrefillWgmmaParams params) {
    using Constants = WgmmaConstants<C>;
    if (threadIdx.x == 0) {
        WgmmaMemory<Constants>::make_barriers(gathers<C>(params) ? kWgmmaGatherers : 1);
    }
    __syncthreads();
    constexpr bool paged = C::kv == kPagedKv;
    constexpr bool mask = C::mask != 0;
    if (warp_index() < 4) {
        give_registers<wgmma_producer_registers(C::tile_m, C::tile_n, paged, mask)>();
        bring<Constants>(params);
    } else {
        take_registers<wgmma_consumer_registers(C::tile_m, C::tile_n, paged, mask)>();
        WgmmaConsumer<Constants>(params).run();
    }
}

}  // namespace jitney
