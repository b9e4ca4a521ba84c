// Copies of boxes of a tensor between global and shared memory by the copy engine (TMA, sm_90+). A
// tensor map (tensor_map.h) says how large a box is, and how its rows are swizzled in shared
// memory. Elements outside of the tensor are read as zeros, whose bytes count as landed, and not
// written. One thread starts a copy; coordinates are in elements, the innermost first, which is a
// multiple of 16 bytes (else a GPU stops the kernel, as for an illegal instruction).
#pragma once

#include "common/shared.cuh"
#include "common/tensor_map.h"

namespace jitney {

// Has the map itself brought near.
JITNEY_DEVICE void tensor_map_prefetch(const TensorMapBits* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// From global memory; `barrier` (mbarrier.cuh) counts the bytes that have landed.
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x0), "r"(x1)
        : "memory");
}
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1, int x2, int x3) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3)
        : "memory");
}
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1, int x2, int x3, int x4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
        : "memory");
}

// The same into several blocks of the cluster at once, bit i of `blocks` for block i: box and count
// of bytes go to the same addresses in each.
JITNEY_DEVICE void tensor_load_multicast(SharedAddress to, const TensorMapBits* map,
                                         SharedAddress barrier, unsigned short blocks, int x0,
                                         int x1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
        "cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to),
        "l"(map), "r"(barrier), "h"(blocks), "r"(x0), "r"(x1)
        : "memory");
}

// To global memory, as part of the thread's open group of stores (bulk_copy.cuh).
JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
        "r"(from), "r"(x0), "r"(x1)
        : "memory");
}
JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1,
                                int x2, int x3) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], "
        "[%1];" ::"l"(map),
        "r"(from), "r"(x0), "r"(x1), "r"(x2), "r"(x3)
        : "memory");
}
JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1,
                                int x2, int x3, int x4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], "
        "[%1];" ::"l"(map),
        "r"(from), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
        : "memory");
}

}  // namespace jitney
