// Copies of whole runs of bytes between global and shared memory by the copy engine (cp.async.bulk,
// sm_90+). One thread starts them. Addresses and numbers of bytes are multiples of 16.
#pragma once

#include "common/shared.cuh"

namespace jitney {

// From global memory; `barrier` (mbarrier.cuh) counts the bytes that have landed.
JITNEY_DEVICE void bulk_load(SharedAddress to, const void* from, unsigned bytes,
                             SharedAddress barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

// To global memory, as part of the thread's open group of stores.
JITNEY_DEVICE void bulk_store(void* to, SharedAddress from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}

// Closes the thread's group of stores, those of tensor copies (tensor_copy.cuh) too.
JITNEY_DEVICE void bulk_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most `pending` of this thread's newest groups still read shared memory.
template <int pending>
JITNEY_DEVICE void bulk_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// Until at most `pending` of this thread's newest groups have not been written.
template <int pending>
JITNEY_DEVICE void bulk_store_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace jitney
