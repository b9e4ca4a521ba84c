#include "common/fp8_mma.cuh"
#include "common/ldmatrix.cuh"
#include "common/mma.cuh"
#include "tests/emulator/toys/toys.hpp"

namespace jitney::toys {
namespace {

// One warp multiplies a (16 x 16) by b (16 x 8) by the layouts that the headers state. `pitch`:
// elements from one row of 16 to the next.
template <int format, bool transposed, unsigned pitch>
__global__ void multiply(const __grid_constant__ ProductParams p) {
    auto* const a = reinterpret_cast<unsigned short*>(shared_memory());
    unsigned short* const b = a + 16 * pitch;
    const unsigned lane = threadIdx.x;
    for (unsigned i = lane; i < 16 * 16; i += 32)
        a[i / 16 * pitch + i % 16] = p.a[i];
    for (unsigned i = lane; i < 16 * 8; i += 32)
        b[transposed ? i : i / 16 * pitch + i % 16] = p.b[i];
    __syncwarp();

    unsigned a_parts[4];
    const unsigned row = lane % 8 + lane / 8 % 2 * 8;
    ldmatrix_x4(a_parts, shared_address(a + pitch * row + lane / 16 * 8));

    // b as it is needed has k along a row of the matrix: [n][k]. Two matrices are of interest,
    // the other two lanes' addresses give the same again.
    unsigned b_parts[4];
    if (transposed) {  // in memory [k][n]
        ldmatrix_x4_transposed(b_parts, shared_address(b + 8 * (lane % 16)));
    } else {  // in memory [n][k]
        ldmatrix_x4(b_parts, shared_address(b + pitch * (lane % 8) + lane / 8 % 2 * 8));
    }
    float c[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    mma_m16n8k16<format>(c, a_parts, b_parts[0], b_parts[1]);

    for (unsigned i = 0; i < 4; ++i)
        p.out[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = c[i];
}

__global__ void multiply_fp8(const __grid_constant__ Fp8ProductParams p) {
    const unsigned lane = threadIdx.x;
    const unsigned row = lane / 4;
    const unsigned four = lane % 4;
    const unsigned a[4] = {p.a[row * 8 + four], p.a[(row + 8) * 8 + four], p.a[row * 8 + four + 4],
                           p.a[(row + 8) * 8 + four + 4]};
    float c[4];
    for (unsigned i = 0; i < 4; ++i)
        c[i] = p.c[(row + i / 2 * 8) * 8 + 2 * four + i % 2];
    mma_m16n8k32<kFp8E4m3, kFp8E5m2>(c, a, p.b[row * 8 + four], p.b[row * 8 + four + 4]);
    for (unsigned i = 0; i < 4; ++i)
        p.c[(row + i / 2 * 8) * 8 + 2 * four + i % 2] = c[i];
}

__global__ void branch(const __grid_constant__ ProductParams p) {
    float c[4] = {};
    const unsigned a[4] = {};
    if (threadIdx.x < 16) {
        mma_m16n8k16<kBf16>(c, a, 0, 0);
    } else {
        mma_m16n8k16<kBf16>(c, a, 1, 1);
    }
    p.out[threadIdx.x] = c[0];
}

}  // namespace

const Kernel product_bf16 = emulator::kernel<&multiply<kBf16, false, 24>>("multiply");
const Kernel product_fp16 = emulator::kernel<&multiply<kFp16, false, 24>>("multiply");
const Kernel product_bf16_transposed = emulator::kernel<&multiply<kBf16, true, 24>>("multiply");
const Kernel product_fp8 = emulator::kernel<&multiply_fp8>("multiply_fp8");
const Kernel product_in_the_same_banks = emulator::kernel<&multiply<kBf16, false, 16>>("multiply");
const Kernel product_on_a_branch = emulator::kernel<&branch>("branch");

}  // namespace jitney::toys
