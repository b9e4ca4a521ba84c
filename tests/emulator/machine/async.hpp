// What a thread can ask of that which works beside the threads: barriers that count bytes, the copy
// engine, and other blocks of the cluster. An address is one of shared memory, of the thread's own
// block or, from address_in_block(), of another.
#pragma once

#include <span>

#include "kernel_sources/common/tensor_map.h"
#include "tests/emulator/machine/device.hpp"

namespace jitney::emulator {

void make_barrier(unsigned address, unsigned arrivals, Where where);
// Announces bytes first.
void arrive_at_barrier(unsigned address, unsigned bytes, Where where);
// Whether the phase of that parity is over: waits for it, but now and then not, and not where
// nothing else can happen, at least the first time.
bool barrier_ended(unsigned address, unsigned parity, Where where);
void barrier_wait(unsigned address, unsigned parity, Where where);

// What the thread wrote, or the barriers that it made, can be seen by agents.
void fence_for_agents();
void fence_made_barriers();

unsigned block_in_cluster();
unsigned address_in_block(unsigned address, unsigned block, Where where);
// A store to another block's memory, or the own one's, of `bytes` at a multiple of them.
void store_in_cluster(unsigned address, const void* from, unsigned bytes, Where where);
// The same on its way: it lands like a copy, and the barrier in that block counts its bytes.
void send_in_cluster(unsigned address, unsigned barrier, const void* from, unsigned bytes,
                     Where where);
void cluster_arrive(Where where);
void cluster_wait(Where where);
// A load from any block's memory, of `bytes` at a multiple of them.
void load_in_cluster(unsigned address, void* to, unsigned bytes, Where where);

// A box of a tensor, by the coordinates of its corner, into the blocks of this set, at the same
// place in each. An empty set: into the block whose addresses are given.
void tensor_load(unsigned to, const TensorMapBits& map, unsigned barrier, unsigned blocks,
                 std::span<const int> corner, Where where);
void tensor_store(const TensorMapBits& map, unsigned from, std::span<const int> corner,
                  Where where);
void check_tensor_map(const TensorMapBits& map, Where where);
// Runs of bytes.
void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned barrier, Where where);
void bulk_store(void* to, unsigned from, unsigned bytes, Where where);
// The thread's groups of stores, of boxes and of runs.
void bulk_store_commit();
void bulk_store_wait(unsigned pending, bool until_written);

// setmaxnreg of a warpgroup.
void share_registers(unsigned count, bool takes, Where where);

}  // namespace jitney::emulator
