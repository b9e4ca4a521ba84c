// Twin of kernel_sources/common/cp_async.cuh: what is copied lies in shared memory from the wait
// on, and no earlier; between the two its place holds NaN.
#pragma once

#include "common/shared.cuh"

namespace jitney {

JITNEY_DEVICE void cp_async_16(SharedAddress to, const void* from, bool valid,
                               emulator::Where where = emulator::Where::here()) {
    emulator::async_copy(to, from, 16, valid ? 16 : 0, where);
}

JITNEY_DEVICE void cp_async_16_part(SharedAddress to, const void* from, int bytes,
                                    emulator::Where where = emulator::Where::here()) {
    emulator::async_copy(to, from, 16, bytes, where);
}

JITNEY_DEVICE void cp_async_4(SharedAddress to, const void* from, bool valid,
                              emulator::Where where = emulator::Where::here()) {
    emulator::async_copy(to, from, 4, valid ? 4 : 0, where);
}

JITNEY_DEVICE void cp_async_commit() {
    emulator::async_commit();
}

template <int pending>
JITNEY_DEVICE void cp_async_wait() {
    emulator::async_wait(pending);
}

}  // namespace jitney
