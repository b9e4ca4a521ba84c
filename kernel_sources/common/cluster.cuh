// Clusters: blocks that run at the same time on neighbouring SMs and reach each other's shared
// memory (sm_90+).
#pragma once

#include "common/shared.cuh"

namespace jitney {

// This block's number in its cluster.
JITNEY_DEVICE unsigned block_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// How many blocks it has: 1 without a cluster.
JITNEY_DEVICE unsigned blocks_in_cluster() {
    unsigned blocks;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
}

// Until all threads of the cluster have come; they see what the others did before. No block may end
// while others reach into its memory.
JITNEY_DEVICE void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
JITNEY_DEVICE void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
JITNEY_DEVICE void cluster_barrier() {
    cluster_arrive();
    cluster_wait();
}

// An address of this block's as it is in another block of the cluster, for accesses to
// shared::cluster.
JITNEY_DEVICE SharedAddress address_in_block(SharedAddress address, unsigned block) {
    SharedAddress there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    return there;
}

// Stores 16 bytes at such an address, a multiple of 16; `there_barrier`, in the same block, counts
// them as bytes of a copy that have landed (mbarrier.cuh).
JITNEY_DEVICE void store_in_cluster(SharedAddress there, SharedAddress there_barrier,
                                    const float (&values)[4]) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, "
        "[%1];" ::"r"(there),
        "r"(there_barrier), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
        : "memory");
}

// Loads from such an address, a multiple of the bytes loaded. Several are under way at a time.
JITNEY_DEVICE void cluster_load(float (&to)[2], SharedAddress there) {
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                 : "=f"(to[0]), "=f"(to[1])
                 : "r"(there)
                 : "memory");
}
JITNEY_DEVICE void cluster_load(float (&to)[4], SharedAddress there) {
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(there)
                 : "memory");
}

}  // namespace jitney
