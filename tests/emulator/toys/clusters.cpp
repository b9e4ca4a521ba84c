#include "common/cluster.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/tensor_copy.cuh"
#include "tests/emulator/toys/hopper.hpp"

namespace jitney::toys {
namespace {

enum class Wrong { nothing, itself, in_use, unmade, ends, twice };

// The box of a round is row `round` of the tensor's second dimension, in halves of its third.
template <Wrong wrong>
__global__ void multicast(const __grid_constant__ MulticastParams p) {
    char* const memory = shared_memory();
    const auto bytes = static_cast<unsigned>(p.bytes);
    const unsigned rank = block_in_cluster();
    const SharedAddress landed = shared_address(memory) + 2 * bytes;
    const SharedAddress read = landed + kBarrierBytes;
    const unsigned own = threadIdx.x;
    if (own == 0) {
        barrier_make(landed, 1);
        barrier_make(read, 2);  // a thread of each block
        fence_made_barriers();
    }
    if (wrong == Wrong::unmade) {
        __syncthreads();
    } else {
        cluster_barrier();
    }
    if (wrong == Wrong::twice) {
        cluster_arrive();
        cluster_arrive();
        cluster_wait();
    }
    for (int round = 0; round < p.rounds; ++round) {
        const unsigned phase = round % 2;
        if (own == 0) {
            if (wrong != Wrong::in_use) barrier_wait(read, phase ^ 1);
            barrier_arrive_expecting(landed, 2 * bytes);
            tensor_load_multicast(
                shared_address(memory) + rank * bytes, &p.map, landed,
                static_cast<unsigned short>(wrong == Wrong::itself ? 1u << rank : 3u), 0, round,
                static_cast<int>(rank), static_cast<int>(blockIdx.x / 2));
        }
        barrier_wait(landed, phase);
        const unsigned words = 2 * bytes / 4;
        for (unsigned i = own; i < words; i += blockDim.x) {
            p.out[(blockIdx.x * static_cast<unsigned>(p.rounds) + static_cast<unsigned>(round)) *
                      words +
                  i] = reinterpret_cast<const unsigned*>(memory)[i];
        }
        __syncthreads();
        if (own < 2) barrier_arrive_in_block(read, own);
    }
    if (wrong != Wrong::ends) cluster_barrier();
}

// Each thread leaves four numbers with its peer in the other block.
template <bool waits>
__global__ void exchange(const __grid_constant__ ExchangeParams p) {
    const auto own = static_cast<float>(blockIdx.x * blockDim.x + threadIdx.x);
    const SharedAddress mine = shared_address(shared_memory() + 16 * threadIdx.x);
    cluster_barrier();
    store_in_cluster(address_in_block(mine, block_in_cluster() ^ 1), {own, own, own, own});
    if (waits) cluster_barrier();
    p.out[blockIdx.x * blockDim.x + threadIdx.x] =
        reinterpret_cast<const float*>(shared_memory())[4 * threadIdx.x + 2];
    if (!waits) cluster_barrier();
}

// Each thread looks at what its peer in the other block has.
template <bool waits>
__global__ void look(const __grid_constant__ ExchangeParams p) {
    float* const numbers = reinterpret_cast<float*>(shared_memory()) + 2 * threadIdx.x;
    const auto own = static_cast<float>(blockIdx.x * blockDim.x + threadIdx.x);
    numbers[0] = numbers[1] = own;
    if (waits) {
        cluster_barrier();
    } else {
        __syncthreads();
    }
    float seen[2];
    cluster_load(seen, address_in_block(shared_address(numbers), block_in_cluster() ^ 1));
    p.out[blockIdx.x * blockDim.x + threadIdx.x] = seen[1];
    cluster_barrier();
}

template <Wrong wrong>
Kernel casting() {
    return emulator::kernel<&multicast<wrong>>("multicast");
}

}  // namespace

const Kernel multicasts = casting<Wrong::nothing>();
const Kernel multicasts_to_itself = casting<Wrong::itself>();
const Kernel multicasts_into_use = casting<Wrong::in_use>();
const Kernel multicasts_before_they_are_made = casting<Wrong::unmade>();
const Kernel ends_before_the_other = casting<Wrong::ends>();
const Kernel waits_for_the_cluster_twice = casting<Wrong::twice>();
const Kernel exchanges_numbers = emulator::kernel<&exchange<true>>("exchange");
const Kernel exchanges_without_a_barrier = emulator::kernel<&exchange<false>>("exchange");
const Kernel looks_at_its_peer = emulator::kernel<&look<true>>("look");
const Kernel looks_without_a_barrier = emulator::kernel<&look<false>>("look");

}  // namespace jitney::toys
