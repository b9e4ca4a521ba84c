#include "common/cp_async.cuh"
#include "common/grid_dependency.cuh"
#include "tests/emulator/toys/toys.hpp"

namespace jitney::toys {
namespace {

enum class Early { nothing, read, copy, atomic, exit };

template <Early early>
__global__ void copy_later(const __grid_constant__ CopyParams p) {
    const int own = static_cast<int>(threadIdx.x);
    release_next_grid();
    float value = 0.0f;
    if (early == Early::exit && own >= p.count) return;
    if (early == Early::read) value = p.in[own];
    if (early == Early::copy) {
        cp_async_16(shared_address(shared_memory() + 16 * own), p.in + 4 * own, true);
        cp_async_commit();
    }
    if (early == Early::atomic) atomicAdd(p.out + own, 1.0f);
    wait_for_previous_grid();
    if (early == Early::copy) cp_async_wait<0>();
    if (own >= p.count) return;
    if (early != Early::read) value = p.in[own];
    p.out[own] = value;
}

// Each block notes itself where the blocks before it ended, after a way of its own length.
__global__ void arrive(const __grid_constant__ SumParams p) {
    for (unsigned i = 0; i < blockIdx.x % 3; ++i)
        __syncthreads();
    if (threadIdx.x == 0) p.partial[atomicAdd(p.done, 1u)] = static_cast<float>(blockIdx.x);
}

}  // namespace

const Kernel notes_arrivals = emulator::kernel<&arrive>("arrive");
const Kernel waits_for_the_grid = emulator::kernel<&copy_later<Early::nothing>>("copy_later");
const Kernel reads_before_the_grid = emulator::kernel<&copy_later<Early::read>>("copy_later");
const Kernel copies_before_the_grid = emulator::kernel<&copy_later<Early::copy>>("copy_later");
const Kernel counts_before_the_grid = emulator::kernel<&copy_later<Early::atomic>>("copy_later");
const Kernel exits_before_the_grid = emulator::kernel<&copy_later<Early::exit>>("copy_later");

}  // namespace jitney::toys
