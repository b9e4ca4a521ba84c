// Asynchronous copies from global to shared memory (cp.async, sm_80+). A copy has landed only
// after its group was waited for, and is then visible to other threads after a barrier.
#pragma once

#include "common/shared.cuh"

namespace jitney {

// Copies 16 bytes; where `valid` is false nothing is read and 16 zero bytes are written.
// Both addresses must be 16-byte aligned.
JITNEY_DEVICE void cp_async_16(SharedAddress to, const void* from, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
}

// Copies `bytes` of 16 and writes zeros for the others. Both addresses must be 16-byte aligned.
JITNEY_DEVICE void cp_async_16_part(SharedAddress to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
}

// Copies 4 bytes, or writes 4 zero bytes.
JITNEY_DEVICE void cp_async_4(SharedAddress to, const void* from, bool valid) {
    const int bytes = valid ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

// Closes the group of copies that this thread issued since the last commit.
JITNEY_DEVICE void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `pending` of this thread's newest groups have not landed.
template <int pending>
JITNEY_DEVICE void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace jitney
