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

}  // namespace jitney
