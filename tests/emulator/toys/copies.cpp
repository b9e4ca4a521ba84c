#include "common/cp_async.cuh"
#include "common/vector.cuh"
#include "tests/emulator/toys/toys.hpp"

namespace jitney::toys {
namespace {

// A thread copies four floats a stage, two stages ahead, and writes what its neighbour copied.
template <int pending, bool barrier_after_reading, bool waits_at_last>
__global__ void stages(const __grid_constant__ CopyParams p) {
    constexpr unsigned kStages = 2;
    float* const values = reinterpret_cast<float*>(shared_memory());
    const unsigned own = threadIdx.x;
    const unsigned width = 4 * blockDim.x;
    const unsigned steps = static_cast<unsigned>(p.count) / width;
    const auto fetch = [&](unsigned step) {
        const unsigned at = step * width + 4 * own;
        cp_async_16(shared_address(values + step % kStages * width + 4 * own), p.in + at,
                    step < steps && own != 5);
        cp_async_commit();
    };
    fetch(0);
    for (unsigned step = 0; step < steps; ++step) {
        if (step + 1 < steps) fetch(step + 1);
        if (step + 1 < steps) {
            cp_async_wait<pending>();
        } else {
            cp_async_wait<0>();
        }
        __syncthreads();
        const unsigned neighbour = (own + 1) % blockDim.x;
        for (unsigned i = 0; i < 4; ++i) {
            p.out[step * width + 4 * neighbour + i] =
                values[step % kStages * width + 4 * neighbour + i];
        }
        if (barrier_after_reading) __syncthreads();
    }
    if (!waits_at_last) fetch(0);
}

__global__ void early_read(const __grid_constant__ CopyParams p) {
    float* const values = reinterpret_cast<float*>(shared_memory());
    cp_async_16(shared_address(values + 4 * threadIdx.x), p.in + 4 * threadIdx.x, true);
    cp_async_commit();
    p.out[threadIdx.x] = values[4 * threadIdx.x];
    cp_async_wait<0>();
}

__global__ void misplaced(const __grid_constant__ CopyParams p) {
    float* const values = reinterpret_cast<float*>(shared_memory());
    cp_async_16(shared_address(values + 4 * threadIdx.x + 1), p.in + 4 * threadIdx.x, true);
    cp_async_commit();
    cp_async_wait<0>();
}

__global__ void copy(const __grid_constant__ CopyParams p) {
    const int own = static_cast<int>(threadIdx.x);
    if (own < p.count) p.out[own] = p.in[own + p.offset];
}

__global__ void copy_vectors(const __grid_constant__ CopyParams p) {
    const unsigned own = threadIdx.x;
    store_vector(p.out + 4 * own, load_vector<4>(p.in + 4 * own + p.offset));
}

__global__ void copy_vectors_to(const __grid_constant__ CopyParams p) {
    const unsigned own = threadIdx.x;
    store_vector(p.out + 4 * own + p.offset, load_vector<4>(p.in + 4 * own));
}

// `offset` is in bytes.
__global__ void copy_words(const __grid_constant__ CopyParams p) {
    const unsigned own = threadIdx.x;
    p.out[own] =
        *reinterpret_cast<const float*>(reinterpret_cast<const char*>(p.in + own) + p.offset);
}

__global__ void copy_asynchronously(const __grid_constant__ CopyParams p) {
    const unsigned own = threadIdx.x;
    cp_async_16(shared_address(shared_memory() + 16 * own), p.in + 4 * own + p.offset,
                p.count != 0);
    cp_async_commit();
    cp_async_wait<0>();
}

}  // namespace

const Kernel copies_in_two_stages = emulator::kernel<&stages<1, true, true>>("stages");
const Kernel waits_for_too_few = emulator::kernel<&stages<2, true, true>>("stages");
const Kernel forgets_to_wait = emulator::kernel<&stages<1, true, false>>("stages");
const Kernel copies_over_what_others_read = emulator::kernel<&stages<1, false, true>>("stages");
const Kernel reads_before_the_wait = emulator::kernel<&early_read>("early_read");
const Kernel copies_to_a_misaligned_place = emulator::kernel<&misplaced>("misplaced");
const Kernel plain_copy = emulator::kernel<&copy>("copy");
const Kernel vector_copy = emulator::kernel<&copy_vectors>("copy_vectors");
const Kernel vector_copy_to = emulator::kernel<&copy_vectors_to>("copy_vectors_to");
const Kernel word_copy = emulator::kernel<&copy_words>("copy_words");
const Kernel asynchronous_copy = emulator::kernel<&copy_asynchronously>("copy_asynchronously");

}  // namespace jitney::toys
