#include "common/bulk_copy.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/tensor_copy.cuh"
#include "tests/emulator/toys/hopper.hpp"

namespace jitney::toys {
namespace {

enum class Wrong {
    nothing,
    at_once,
    phase_before,
    more,
    less,
    hidden,
    in_use,
    unfenced,
    ends,
    misplaced,
    no_map,
    late_fence,
    overwrites,
    open
};

// Shared memory: two barriers in its last 16 bytes, and the box at its begin.
template <Wrong wrong>
__global__ void bring(const __grid_constant__ BoxParams p) {
    char* const memory = shared_memory();
    unsigned* const words = reinterpret_cast<unsigned*>(memory);
    const SharedAddress landed =
        shared_address(memory) + static_cast<unsigned>((p.bytes + 1023) / 1024 * 1024 + 1024);
    const unsigned own = threadIdx.x;
    const int count = p.bytes / 4;
    if (own == 0) {
        barrier_make(landed, 1);
        if (wrong != Wrong::hidden) fence_made_barriers();
    }
    if (wrong == Wrong::unfenced) words[own] = own;
    __syncthreads();
    const auto load = [&] {
        const auto* map = &p.map;
        TensorMapBits other = {};
        if (wrong == Wrong::no_map) map = &other;
        barrier_arrive_expecting(landed,
                                 static_cast<unsigned>(p.bytes + (wrong == Wrong::more   ? 16
                                                                  : wrong == Wrong::less ? -16
                                                                                         : 0)));
        tensor_load(shared_address(memory) + (wrong == Wrong::misplaced ? 64 : 0), map, landed,
                    p.corner[0], p.corner[1], p.corner[2], p.corner[3]);
    };
    if (own == 0) load();
    if (wrong == Wrong::ends) return;
    if (wrong != Wrong::at_once) barrier_wait(landed, wrong == Wrong::phase_before ? 1 : 0);
    for (int i = static_cast<int>(own); i < count; i += static_cast<int>(blockDim.x))
        p.out[i] = words[i];
    if (wrong == Wrong::in_use && own == 0) {
        load();
        barrier_wait(landed, 1);
    }
}

template <Wrong wrong>
__global__ void take_away(const __grid_constant__ BoxParams p) {
    unsigned* const words = reinterpret_cast<unsigned*>(shared_memory());
    const unsigned own = threadIdx.x;
    for (unsigned i = own; i < static_cast<unsigned>(p.bytes) / 4; i += blockDim.x)
        words[i] = i;
    if (wrong != Wrong::unfenced && wrong != Wrong::late_fence) fence_shared_for_async();
    __syncthreads();
    if (wrong == Wrong::late_fence) fence_shared_for_async();
    if (own == 0) {
        tensor_store(&p.map, shared_address(words), p.corner[0], p.corner[1], p.corner[2],
                     p.corner[3]);
        if (wrong != Wrong::open) bulk_store_commit();
        if (wrong == Wrong::overwrites) words[1] = 7;
        if (wrong == Wrong::ends || wrong == Wrong::open) return;
        bulk_store_wait_read<0>();
        words[2] = 7;
    }
}

// Two groups of stores, so that waits for one of them show.
__global__ void copy_runs(const __grid_constant__ RunParams p) {
    unsigned* const words = reinterpret_cast<unsigned*>(shared_memory());
    const auto bytes = static_cast<unsigned>(p.words) * 4;
    const SharedAddress landed = shared_address(words) + bytes;
    if (threadIdx.x == 0) {
        barrier_make(landed, 1);
        fence_made_barriers();
        barrier_arrive_expecting(landed, bytes);
        bulk_load(shared_address(words), p.in, bytes / 2, landed);
        bulk_load(shared_address(words) + bytes / 2, p.in + p.words / 2, bytes / 2, landed);
        barrier_wait(landed, 0);
        bulk_store(p.out, shared_address(words), bytes / 2);
        bulk_store_commit();
        bulk_store(p.out + p.words / 2, shared_address(words) + bytes / 2, bytes / 2);
        bulk_store_commit();
        bulk_store_wait_read<1>();
        words[0] = 7;  // of the first group
        bulk_store_wait<0>();
        p.out[p.words] = p.out[0] + p.out[p.words - 1];
    }
}

template <Wrong wrong>
Kernel bringing() {
    return emulator::kernel<&bring<wrong>>("bring");
}
template <Wrong wrong>
Kernel taking() {
    return emulator::kernel<&take_away<wrong>>("take_away");
}

}  // namespace

const Kernel brings_a_box = bringing<Wrong::nothing>();
const Kernel brings_a_box_and_reads_at_once = bringing<Wrong::at_once>();
const Kernel brings_a_box_and_waits_for_the_phase_before = bringing<Wrong::phase_before>();
const Kernel brings_a_box_expecting_more = bringing<Wrong::more>();
const Kernel brings_a_box_expecting_less = bringing<Wrong::less>();
const Kernel brings_a_box_by_a_hidden_barrier = bringing<Wrong::hidden>();
const Kernel brings_a_box_over_one_that_is_read = bringing<Wrong::in_use>();
const Kernel brings_a_box_over_unfenced_words = bringing<Wrong::unfenced>();
const Kernel brings_a_box_and_ends = bringing<Wrong::ends>();
const Kernel brings_a_box_to_a_misaligned_place = bringing<Wrong::misplaced>();
const Kernel brings_a_box_by_no_map = bringing<Wrong::no_map>();
const Kernel takes_a_box_away = taking<Wrong::nothing>();
const Kernel takes_a_box_away_without_a_fence = taking<Wrong::unfenced>();
const Kernel takes_a_box_away_fenced_too_late = taking<Wrong::late_fence>();
const Kernel takes_a_box_away_and_overwrites_it = taking<Wrong::overwrites>();
const Kernel takes_a_box_away_and_ends = taking<Wrong::ends>();
const Kernel takes_a_box_away_and_leaves_the_group_open = taking<Wrong::open>();
const Kernel copies_runs = emulator::kernel<&copy_runs>("copy_runs");

}  // namespace jitney::toys
