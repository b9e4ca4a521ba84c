// The same as hopper_kernels.cuh for copies of boxes of tensors, whose kernels take two tensor maps
// more: of a tensor within `in` and of one of the same shape within `out`, both of which begin
// behind the first 64 words.
#if __CUDA_ARCH__ >= 900
#include "common/bulk_copy.cuh"
#include "common/cluster.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/tensor_copy.cuh"

namespace jitney::wrappers {

// In the memory of the parameters, where the copy engine reads them.
struct TensorMaps {
    TensorMapBits in;
    TensorMapBits out;
};

// The first words of `in`, which tell where boxes lie and how large they are.
struct BoxPlaces {
    int from[5];          // the corner of the box that is loaded
    int to[5];            // and of the one that is stored
    unsigned words;       // of a box
    unsigned copy_at;     // where in `out` boxes go as they lie in shared memory
    unsigned barrier_at;  // in shared memory, in bytes
    unsigned blocks[2];   // of a cluster of two: which blocks get the box of each
};

template <int rank>
JITNEY_DEVICE void load_box(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                            const int (&at)[5]) {
    if constexpr (rank == 2) tensor_load(to, map, barrier, at[0], at[1]);
    if constexpr (rank == 4) tensor_load(to, map, barrier, at[0], at[1], at[2], at[3]);
    if constexpr (rank == 5) tensor_load(to, map, barrier, at[0], at[1], at[2], at[3], at[4]);
}
template <int rank>
JITNEY_DEVICE void store_box(const TensorMapBits* map, SharedAddress from, const int (&at)[5]) {
    if constexpr (rank == 2) tensor_store(map, from, at[0], at[1]);
    if constexpr (rank == 4) tensor_store(map, from, at[0], at[1], at[2], at[3]);
    if constexpr (rank == 5) tensor_store(map, from, at[0], at[1], at[2], at[3], at[4]);
}

// A box of the one tensor comes to shared memory, and goes from there, 1 more in each word, to the
// other.
template <int rank>
__global__ void boxes(const __grid_constant__ TensorMaps maps, const unsigned* in, unsigned* out) {
    const BoxPlaces places = *reinterpret_cast<const BoxPlaces*>(in);
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const SharedAddress landed = shared_address(shared_memory() + places.barrier_at);
    if (threadIdx.x == 0) {
        tensor_map_prefetch(&maps.in);
        tensor_map_prefetch(&maps.out);
        barrier_make(landed, 1);
        fence_made_barriers();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_arrive_expecting(landed, 4 * places.words);
        load_box<rank>(shared_address(shared), &maps.in, landed, places.from);
    }
    barrier_wait(landed, 0);
    for (unsigned i = threadIdx.x; i < places.words; i += blockDim.x) {
        out[places.copy_at + i] = shared[i];
        shared[i] += 1;
    }
    fence_shared_for_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_box<rank>(&maps.out, shared_address(shared), places.to);
        bulk_store_commit();
        bulk_store_wait<0>();
    }
}

// Two blocks of a cluster load a box each, the second the one below the first's, into the blocks
// that they are told. out: the places for both boxes, of each block; what got none keeps its ones.
__global__ void boxes_for_blocks(const __grid_constant__ TensorMaps maps, const unsigned* in,
                                 unsigned* out) {
    const BoxPlaces places = *reinterpret_cast<const BoxPlaces*>(in);
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const SharedAddress landed = shared_address(shared_memory() + places.barrier_at);
    const unsigned own = block_in_cluster();
    const unsigned boxes = (places.blocks[0] >> own & 1) + (places.blocks[1] >> own & 1);
    for (unsigned i = threadIdx.x; i < 2 * places.words; i += blockDim.x)
        shared[i] = 0xffffffffu;
    fence_shared_for_async();
    if (threadIdx.x == 0) {
        barrier_make(landed, 1);
        fence_made_barriers();
    }
    __syncthreads();
    cluster_barrier();
    if (threadIdx.x == 0) {
        barrier_arrive_expecting(landed, 4 * boxes * places.words);
        tensor_load_multicast(shared_address(shared + own * places.words), &maps.in, landed,
                              static_cast<unsigned short>(places.blocks[own]), places.from[0],
                              places.from[1] + static_cast<int>(own));
    }
    barrier_wait(landed, 0);
    for (unsigned i = threadIdx.x; i < 2 * places.words; i += blockDim.x)
        out[places.copy_at + 2 * own * places.words + i] = shared[i];
    cluster_barrier();
}

}  // namespace jitney::wrappers
#endif
