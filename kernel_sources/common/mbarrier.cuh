// Barriers in shared memory (mbarrier, sm_90+) that count arrivals and bytes of asynchronous
// copies. A barrier is in a phase, first 0, then 1, 0...; a phase ends when all arrivals that it
// was made for have come, and all bytes that were announced have landed. Who waits names the phase
// that has to end: a fresh barrier counts as if phase 1 had ended already.
#pragma once

#include "common/shared.cuh"

namespace jitney {

constexpr int kBarrierBytes = 8;

JITNEY_DEVICE void barrier_make(SharedAddress barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

JITNEY_DEVICE void barrier_arrive(SharedAddress barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives once all copies by cp.async that this thread has begun have landed, and does not wait for
// them. It counts as one of the arrivals that the barrier was made for.
JITNEY_DEVICE void barrier_arrive_after_copies(SharedAddress barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and announces bytes that copies will bring.
JITNEY_DEVICE void barrier_arrive_expecting(SharedAddress barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Arrives at the barrier that lies at the same address in another block of the cluster.
JITNEY_DEVICE void barrier_arrive_in_block(SharedAddress barrier, unsigned block) {
    asm volatile(
        "{.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}" ::"r"(barrier),
        "r"(block)
        : "memory");
}

// Whether the phase has ended by now.
JITNEY_DEVICE bool barrier_has_ended(SharedAddress barrier, unsigned phase) {
    unsigned ended;
    asm volatile(
        "{.reg .pred ended;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;}"
        : "=r"(ended)
        : "r"(barrier), "r"(phase)
        : "memory");
    return ended != 0;
}

// Whether the phase has ended; returns at the latest after about 10 ms.
JITNEY_DEVICE bool barrier_ended(SharedAddress barrier, unsigned phase) {
    constexpr unsigned nanoseconds = 10000000;
    unsigned ended;
    asm volatile(
        "{.reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2, %3;\n"
        "selp.u32 %0, 1, 0, ended;}"
        : "=r"(ended)
        : "r"(barrier), "r"(phase), "r"(nanoseconds)
        : "memory");
    return ended != 0;
}

// Until the phase has ended; what arrived threads did before, and what copies brought, is seen.
JITNEY_DEVICE void barrier_wait(SharedAddress barrier, unsigned phase) {
    while (!barrier_ended(barrier, phase)) {
    }
}

}  // namespace jitney
