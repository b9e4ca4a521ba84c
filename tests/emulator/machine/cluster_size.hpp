// How many blocks the cluster of the running thread has; 1 without a cluster.
#pragma once

namespace jitney::emulator {

unsigned blocks_in_cluster();

}  // namespace jitney::emulator
