// Twin of kernel_sources/common/cluster.cuh.
#pragma once

#include "common/shared.cuh"
#include "tests/emulator/machine/async.hpp"
#include "tests/emulator/machine/cluster_size.hpp"

namespace jitney {

JITNEY_DEVICE unsigned block_in_cluster() {
    return emulator::block_in_cluster();
}

JITNEY_DEVICE unsigned blocks_in_cluster() {
    return emulator::blocks_in_cluster();
}

JITNEY_DEVICE void cluster_arrive(emulator::Where where = emulator::Where::here()) {
    emulator::cluster_arrive(where);
}
JITNEY_DEVICE void cluster_wait(emulator::Where where = emulator::Where::here()) {
    emulator::cluster_wait(where);
}
JITNEY_DEVICE void cluster_barrier(emulator::Where where = emulator::Where::here()) {
    emulator::cluster_arrive(where);
    emulator::cluster_wait(where);
}

JITNEY_DEVICE SharedAddress address_in_block(SharedAddress address, unsigned block,
                                             emulator::Where where = emulator::Where::here()) {
    return emulator::address_in_block(address, block, where);
}

JITNEY_DEVICE void store_in_cluster(SharedAddress there, const float (&values)[4],
                                    emulator::Where where = emulator::Where::here()) {
    emulator::store_in_cluster(there, values, sizeof values, where);
}
JITNEY_DEVICE void store_in_cluster(SharedAddress there, SharedAddress there_barrier,
                                    const float (&values)[4],
                                    emulator::Where where = emulator::Where::here()) {
    emulator::send_in_cluster(there, there_barrier, values, sizeof values, where);
}

template <int count>
JITNEY_DEVICE void cluster_load(float (&to)[count], SharedAddress there,
                                emulator::Where where = emulator::Where::here()) {
    static_assert(count == 2 || count == 4);
    emulator::load_in_cluster(there, to, sizeof to, where);
}

}  // namespace jitney
