#include "common/mbarrier.cuh"
#include "common/named_barrier.cuh"
#include "common/register_share.cuh"
#include "common/warp.cuh"
#include "tests/emulator/toys/hopper.hpp"

namespace jitney::toys {
namespace {

enum class Wrong { nothing, phase, fewer, more, twice, in_use, unannounced, reads };

template <Wrong wrong>
__global__ void hand_over(const __grid_constant__ HandOverParams p) {
    constexpr int places = 2;
    unsigned* const words = reinterpret_cast<unsigned*>(shared_memory());
    const SharedAddress barriers = shared_address(words + 32 * places);
    const auto full = [&](int place) { return barriers + 2 * place * kBarrierBytes; };
    const auto empty = [&](int place) { return full(place) + kBarrierBytes; };
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int place = 0; place < places; ++place) {
            barrier_make(full(place),
                         wrong == Wrong::fewer ? 31 : (wrong == Wrong::more ? 33 : 32));
            barrier_make(empty(place), 32);
        }
    }
    if (wrong == Wrong::unannounced) {
        __syncwarp();
    } else {
        __syncthreads();
    }
    if (wrong == Wrong::reads && threadIdx.x == 40) p.out[0] = words[32 * places];
    for (int round = 0; round < p.rounds; ++round) {
        const int place = round % places;
        const unsigned phase = round / places % 2;
        if (warp_index() == 0) {
            if (wrong != Wrong::in_use) barrier_wait(empty(place), phase ^ 1);
            words[32 * place + lane] = 32 * round + lane;
            barrier_arrive(full(place));
            if (wrong == Wrong::twice && lane == 3) barrier_arrive(full(place));
        } else {
            barrier_wait(full(place), wrong == Wrong::phase ? phase ^ 1 : phase);
            p.out[32 * round + lane] = words[32 * place + 31 - lane];
            barrier_arrive(empty(place));
        }
    }
}

template <bool back>
__global__ void come_and_go_on(const __grid_constant__ HandOverParams p) {
    unsigned* const words = reinterpret_cast<unsigned*>(shared_memory());
    const unsigned own = threadIdx.x % 64;
    const bool goes_on = threadIdx.x < 64;
    if (goes_on != back) words[own] = own;
    if (goes_on) {
        named_barrier_arrive(3, 128);
    } else {
        named_barrier_wait(3, 128);
    }
    if (goes_on == back) p.out[own] = words[63 - own];
}

template <int given, int taken>
__global__ void __launch_bounds__(384, 1)
    share_registers(const __grid_constant__ HandOverParams p) {
    if (threadIdx.x < 128) {
        give_registers<given>();
    } else {
        take_registers<taken>();
        p.out[threadIdx.x - 128] = threadIdx.x;
    }
}

}  // namespace

const Kernel hands_over = emulator::kernel<&hand_over<Wrong::nothing>>("hand_over");
const Kernel hands_over_reading_a_phase_early =
    emulator::kernel<&hand_over<Wrong::phase>>("hand_over");
const Kernel hands_over_for_one_arrival_less =
    emulator::kernel<&hand_over<Wrong::fewer>>("hand_over");
const Kernel hands_over_for_one_arrival_more =
    emulator::kernel<&hand_over<Wrong::more>>("hand_over");
const Kernel hands_over_arriving_twice = emulator::kernel<&hand_over<Wrong::twice>>("hand_over");
const Kernel hands_over_into_a_place_in_use =
    emulator::kernel<&hand_over<Wrong::in_use>>("hand_over");
const Kernel hands_over_by_a_barrier_of_now =
    emulator::kernel<&hand_over<Wrong::unannounced>>("hand_over");
const Kernel reads_a_barrier = emulator::kernel<&hand_over<Wrong::reads>>("hand_over");
const Kernel comes_and_goes_on = emulator::kernel<&come_and_go_on<false>>("come_and_go_on");
const Kernel comes_and_reads_on = emulator::kernel<&come_and_go_on<true>>("come_and_go_on");
const Kernel shares_registers = emulator::kernel<&share_registers<40, 232>>("share_registers", 384);
const Kernel takes_more_than_given =
    emulator::kernel<&share_registers<48, 232>>("share_registers", 384);
const Kernel gives_more_than_it_has =
    emulator::kernel<&share_registers<176, 168>>("share_registers", 384);

}  // namespace jitney::toys
