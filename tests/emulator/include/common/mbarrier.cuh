// Twin of kernel_sources/common/mbarrier.cuh: the machine counts arrivals and bytes, and reports
// who waits for a phase that can't end.
#pragma once

#include "common/shared.cuh"
#include "tests/emulator/machine/async.hpp"

namespace jitney {

constexpr int kBarrierBytes = 8;

JITNEY_DEVICE void barrier_make(SharedAddress barrier, unsigned arrivals,
                                emulator::Where where = emulator::Where::here()) {
    emulator::make_barrier(barrier, arrivals, where);
}

JITNEY_DEVICE void barrier_arrive(SharedAddress barrier,
                                  emulator::Where where = emulator::Where::here()) {
    emulator::arrive_at_barrier(barrier, 0, where);
}

// Here the copies land at once.
JITNEY_DEVICE void barrier_arrive_after_copies(SharedAddress barrier,
                                               emulator::Where where = emulator::Where::here()) {
    emulator::async_commit();
    emulator::async_wait(0);
    emulator::arrive_at_barrier(barrier, 0, where);
}

JITNEY_DEVICE void barrier_arrive_expecting(SharedAddress barrier, unsigned bytes,
                                            emulator::Where where = emulator::Where::here()) {
    emulator::arrive_at_barrier(barrier, bytes, where);
}

JITNEY_DEVICE void barrier_arrive_in_block(SharedAddress barrier, unsigned block,
                                           emulator::Where where = emulator::Where::here()) {
    emulator::arrive_at_barrier(emulator::address_in_block(barrier, block, where), 0, where);
}

JITNEY_DEVICE bool barrier_ended(SharedAddress barrier, unsigned phase,
                                 emulator::Where where = emulator::Where::here()) {
    return emulator::barrier_ended(barrier, phase, where);
}

JITNEY_DEVICE bool barrier_has_ended(SharedAddress barrier, unsigned phase,
                                     emulator::Where where = emulator::Where::here()) {
    return emulator::barrier_ended(barrier, phase, where);
}

JITNEY_DEVICE void barrier_wait_in_cluster(SharedAddress barrier, unsigned phase,
                                           emulator::Where where = emulator::Where::here()) {
    emulator::barrier_wait(barrier, phase, where);
}

JITNEY_DEVICE void barrier_wait(SharedAddress barrier, unsigned phase,
                                emulator::Where where = emulator::Where::here()) {
    emulator::barrier_wait(barrier, phase, where);
}

}  // namespace jitney
