// Twin of kernel_sources/common/bulk_copy.cuh.
#pragma once

#include "common/shared.cuh"
#include "tests/emulator/machine/async.hpp"

namespace jitney {

JITNEY_DEVICE void bulk_load(SharedAddress to, const void* from, unsigned bytes,
                             SharedAddress barrier,
                             emulator::Where where = emulator::Where::here()) {
    emulator::bulk_load(to, from, bytes, barrier, where);
}

JITNEY_DEVICE void bulk_store(void* to, SharedAddress from, unsigned bytes,
                              emulator::Where where = emulator::Where::here()) {
    emulator::bulk_store(to, from, bytes, where);
}

JITNEY_DEVICE void bulk_store_commit() {
    emulator::bulk_store_commit();
}

template <int pending>
JITNEY_DEVICE void bulk_store_wait_read() {
    emulator::bulk_store_wait(pending, false);
}

template <int pending>
JITNEY_DEVICE void bulk_store_wait() {
    emulator::bulk_store_wait(pending, true);
}

}  // namespace jitney
