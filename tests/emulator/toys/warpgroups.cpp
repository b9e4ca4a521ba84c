#include "common/bulk_copy.cuh"
#include "common/mbarrier.cuh"
#include "common/proxy.cuh"
#include "common/wgmma.cuh"
#include "tests/emulator/toys/hopper.hpp"

namespace jitney::toys {
namespace {

enum class Wrong {
    nothing,
    at_once,
    settles,
    too_few,
    no_fence,
    no_barrier,
    no_begin,
    changes_c,
    changes_a,
    overwrites_b,
    branch,
    ends,
    not_landed,
    past_the_end
};

constexpr unsigned kDepth = 64;
constexpr unsigned kColumns = 32;

// Rows of 64 elements into a panel.
__device__ void fill(char* panel, const unsigned short* from, unsigned rows) {
    for (unsigned i = threadIdx.x; i < rows * kDepth; i += blockDim.x) {
        const unsigned row = i / kDepth;
        const unsigned chunk = i % kDepth / 8 ^ row % 8;
        reinterpret_cast<unsigned short*>(panel)[row * kDepth + chunk * 8 + i % 8] = from[i];
    }
}

template <Wrong wrong, bool registers>
__global__ void multiply(const __grid_constant__ WarpgroupParams p) {
    char* const a_panel = shared_memory();
    char* const b_panel = a_panel + 64 * kPanelRowBytes;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x / 32 * 16 + lane / 4;
    fill(a_panel, p.a, 64);
    fill(b_panel, p.b, kColumns);
    if (wrong != Wrong::no_fence) fence_shared_for_async();
    if (wrong != Wrong::no_barrier) __syncthreads();
    if (wrong == Wrong::not_landed && threadIdx.x == 5) {
        const SharedAddress landed = shared_address(b_panel) + kColumns * kPanelRowBytes;
        barrier_make(landed, 1);
        fence_made_barriers();
        barrier_arrive_expecting(landed, 16);
        bulk_load(shared_address(b_panel) + (kColumns - 1) * kPanelRowBytes, p.a, 16, landed);
    }
    if (wrong == Wrong::not_landed) __syncthreads();
    float c[kColumns / 8][4];
    for (unsigned i = 0; i < kColumns / 2; ++i)
        c[i / 4][i % 4] = 7.0f;
    unsigned parts[4][4];
    for (unsigned step = 0; step < 4; ++step) {
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned k = step * 16 + 2 * (lane % 4) + i / 2 * 8;
            const unsigned short* from = p.a + (row + i % 2 * 8) * kDepth + k;
            parts[step][i] = from[0] | static_cast<unsigned>(from[1]) << 16;
        }
    }
    const WgmmaOperand a = wgmma_operand(shared_address(a_panel), 0);
    const WgmmaOperand b = wgmma_operand(
        shared_address(b_panel) + (wrong == Wrong::past_the_end ? 8 * kPanelRowBytes : 0), 0);
    if (wrong == Wrong::branch && threadIdx.x >= 96) return;
    if (wrong != Wrong::no_begin) wgmma_begin();
    for (int step = 0; step < 4; ++step) {
        const WgmmaOperand b_step = wgmma_operand_at(b, k_major_step(step, 0));
        if constexpr (registers) {
            wgmma<kBf16, false>(c, parts[step], b_step, step > 0);
        } else {
            wgmma<kBf16, false>(c, wgmma_operand_at(a, k_major_step(step, 0)), b_step, step > 0);
        }
    }
    wgmma_commit();
    if (wrong == Wrong::changes_a) parts[2][1] = 0;
    if (wrong == Wrong::changes_c) c[1][2] = 3.0f;
    if (wrong == Wrong::overwrites_b && threadIdx.x == 77)
        *reinterpret_cast<unsigned*>(b_panel + 5 * kPanelRowBytes) = 0;
    if (wrong == Wrong::settles) wgmma_settle(c);
    if (wrong == Wrong::ends) return;
    float early = 0.0f;
    if (wrong == Wrong::at_once) early = c[3][3];
    if (wrong == Wrong::too_few) {
        wgmma_wait<1>();
    } else {
        wgmma_wait<0>();
    }
    wgmma_settle(c);
    if (wrong == Wrong::at_once) c[3][3] = early;
    for (unsigned i = 0; i < kColumns / 2; ++i) {
        p.out[(row + i / 2 % 2 * 8) * kColumns + i / 4 * 8 + 2 * (lane % 4) + i % 2] =
            c[i / 4][i % 4];
    }
}

template <Wrong wrong, bool registers = false>
Kernel multiplying() {
    return emulator::kernel<&multiply<wrong, registers>>("multiply");
}

}  // namespace

const Kernel multiplies = multiplying<Wrong::nothing>();
const Kernel multiplies_registers = multiplying<Wrong::nothing, true>();
const Kernel multiplies_and_reads_at_once = multiplying<Wrong::at_once>();
const Kernel multiplies_and_settles_at_once = multiplying<Wrong::settles>();
const Kernel multiplies_and_waits_for_too_few = multiplying<Wrong::too_few>();
const Kernel multiplies_without_a_fence = multiplying<Wrong::no_fence>();
const Kernel multiplies_without_a_barrier = multiplying<Wrong::no_barrier>();
const Kernel multiplies_without_beginning = multiplying<Wrong::no_begin>();
const Kernel multiplies_and_changes_c = multiplying<Wrong::changes_c>();
const Kernel multiplies_and_changes_a = multiplying<Wrong::changes_a, true>();
const Kernel multiplies_and_overwrites_b = multiplying<Wrong::overwrites_b>();
const Kernel multiplies_on_a_branch = multiplying<Wrong::branch>();
const Kernel multiplies_and_ends = multiplying<Wrong::ends>();
const Kernel multiplies_what_has_not_landed = multiplying<Wrong::not_landed>();
const Kernel multiplies_past_the_end = multiplying<Wrong::past_the_end>();

}  // namespace jitney::toys
