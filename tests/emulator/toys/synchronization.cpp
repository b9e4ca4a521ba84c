#include "common/warp.cuh"
#include "tests/emulator/toys/toys.hpp"

namespace jitney::toys {
namespace {

template <bool barrier, bool exact_size>
__global__ void __launch_bounds__(128) reverse_block(const __grid_constant__ ReverseParams p) {
    float* const values = reinterpret_cast<float*>(shared_memory());
    const unsigned own = threadIdx.x;
    const unsigned last = blockDim.x - 1;
    values[exact_size ? own : own + 1] = p.in[blockIdx.x * blockDim.x + own];
    if (barrier) __syncthreads();
    p.out[blockIdx.x * blockDim.x + own] = values[last - own];
}

__global__ void reverse_early(const __grid_constant__ ReverseParams p) {
    float* const values = reinterpret_cast<float*>(shared_memory());
    const unsigned own = threadIdx.x;
    values[own] = p.in[own];
    __syncthreads();
    const float mirrored = values[blockDim.x - 1 - own];
    values[own] = mirrored;
    __syncthreads();
    p.out[own] = values[own];
}

__global__ void read_unwritten(const __grid_constant__ ReverseParams p) {
    const float* const values = reinterpret_cast<const float*>(shared_memory());
    p.out[threadIdx.x] = values[threadIdx.x];
}

template <bool barrier>
__global__ void exchange(const __grid_constant__ ReverseParams p) {
    float* const values = reinterpret_cast<float*>(shared_memory());
    const unsigned own = threadIdx.x;
    values[own] = p.in[own];
    if (barrier) __syncwarp();
    p.out[own] = values[own ^ 1];
}

__global__ void rotate(const __grid_constant__ ReverseParams p) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const float value = p.in[threadIdx.x];
    const float next = __shfl_sync(kAllLanes, value, lane + 1);
    const float sum_of_four = warp_sum<4>(value);
    const float before = __shfl_up_sync(kAllLanes, value, 1);
    const float after = __shfl_down_sync(kAllLanes, value, 1);
    const unsigned even = __ballot_sync(kAllLanes, lane % 2 == 0);
    const bool right = even == 0x55555555u && __any_sync(kAllLanes, lane == 3) &&
                       !__all_sync(kAllLanes, lane == 3);
    float* const out = p.out + 4 * threadIdx.x;
    out[0] = right ? next : -1.0f;
    out[1] = sum_of_four;
    out[2] = before;
    out[3] = after;
}

__global__ void shuffle_outside(const __grid_constant__ ReverseParams p) {
    const unsigned lane = threadIdx.x % 32;
    if (lane < 16) p.out[threadIdx.x] = __shfl_sync(0xffffu, p.in[threadIdx.x], 20);
}

__global__ void half_barrier(const __grid_constant__ BarrierParams p) {
    if (threadIdx.x < 64) __syncthreads();
    if (threadIdx.x >= 64) __syncwarp();
    if (threadIdx.x >= 64) __syncthreads_count(1);
    p.out[threadIdx.x] = 1;
}

__global__ void exit_early(const __grid_constant__ BarrierParams p) {
    if (threadIdx.x == 77) return;
    __syncthreads();
    p.out[threadIdx.x] = 1;
}

__global__ void branches(const __grid_constant__ BarrierParams p) {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    p.out[threadIdx.x] = 1;
}

__global__ void half_warp(const __grid_constant__ BarrierParams p) {
    if (threadIdx.x % 32 < 16) {
        __syncwarp();
    } else {
        __syncwarp(0xffff0001u);  // lane 0 waits elsewhere
    }
    p.out[threadIdx.x] = 1;
}

__global__ void mixed(const __grid_constant__ BarrierParams p) {
    if (threadIdx.x % 32 < 16) {
        __syncwarp();
    } else {
        p.out[threadIdx.x] = __any_sync(kAllLanes, 1);
    }
}

// Two groups of two warps. Each reverses its 64 numbers; neither waits for the other.
template <bool barrier>
__global__ void groups(const __grid_constant__ BarrierParams p) {
    int* const values = reinterpret_cast<int*>(shared_memory());
    const unsigned group = threadIdx.x / 64;
    const unsigned own = threadIdx.x % 64;
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (barrier) emulator::named_barrier(1 + group, 64, true, emulator::Where::here());
    p.out[threadIdx.x] = values[64 * group + 63 - own];
}

template <bool late>
__global__ void sum_blocks(const __grid_constant__ SumParams p) {
    bool* const last = reinterpret_cast<bool*>(shared_memory());
    float part = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(p.count);
         i += gridDim.x * blockDim.x) {
        part += p.in[i];
    }
    part = warp_sum(part);
    if (!late && threadIdx.x == 0) *last = atomicAdd(p.done, 1u) == gridDim.x - 1;
    if (threadIdx.x == 0) p.partial[blockIdx.x] = part;
    __threadfence();
    if (late && threadIdx.x == 0) *last = atomicAdd(p.done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!*last || threadIdx.x != 0) return;
    float sum = 0.0f;
    for (unsigned i = 0; i < gridDim.x; ++i)
        sum += p.partial[i];
    *p.out = sum;
}

}  // namespace

const Kernel reverse = emulator::kernel<&reverse_block<true, true>>("reverse", 128);
const Kernel reverse_without_barrier = emulator::kernel<&reverse_block<false, true>>("reverse");
const Kernel reverse_in_place_too_early = emulator::kernel<&reverse_early>("reverse_early");
const Kernel reverse_past_the_end = emulator::kernel<&reverse_block<true, false>>("reverse");
const Kernel reads_what_nobody_wrote = emulator::kernel<&read_unwritten>("read_unwritten");
const Kernel warp_exchange = emulator::kernel<&exchange<true>>("exchange");
const Kernel warp_exchange_without_barrier = emulator::kernel<&exchange<false>>("exchange");
const Kernel rotates_by_shuffle = emulator::kernel<&rotate>("rotate");
const Kernel shuffles_from_outside = emulator::kernel<&shuffle_outside>("shuffle_outside");
const Kernel half_a_barrier = emulator::kernel<&half_barrier>("half_barrier");
const Kernel early_exit = emulator::kernel<&exit_early>("exit_early");
const Kernel barriers_on_branches = emulator::kernel<&branches>("branches");
const Kernel half_a_warp = emulator::kernel<&half_warp>("half_warp");
const Kernel mixed_collectives = emulator::kernel<&mixed>("mixed");
const Kernel groups_of_warps = emulator::kernel<&groups<true>>("groups");
const Kernel groups_without_barrier = emulator::kernel<&groups<false>>("groups");
const Kernel sum_by_last_block = emulator::kernel<&sum_blocks<true>>("sum_blocks");
const Kernel sum_by_last_block_too_early = emulator::kernel<&sum_blocks<false>>("sum_blocks");

}  // namespace jitney::toys
