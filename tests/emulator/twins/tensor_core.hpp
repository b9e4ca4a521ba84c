// Warp-wide matrix loads, stores and products.
#pragma once

#include "tests/emulator/machine/device.hpp"

namespace jitney::emulator {

// ldmatrix.x4: the layouts are those that kernel_sources/common/ldmatrix.cuh states.
void load_matrices(const char* kind, unsigned (&matrices)[4], unsigned row, bool transposed,
                   Where where);

// stmatrix.x4: those of kernel_sources/common/stmatrix.cuh.
void store_matrices(const char* kind, const unsigned (&matrices)[4], unsigned row, bool transposed,
                    Where where);

// mma.m16n8k16 of bf16 or fp16: the layouts are those that kernel_sources/common/mma.cuh states.
void mma_m16n8k16(bool bf16, float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                  Where where);

// mma.m16n8k32 of 8-bit formats, which their bits of exponent name: the layouts are those that
// kernel_sources/common/fp8_mma.cuh states. Sums keep the few bits that the hardware keeps.
void mma_m16n8k32(int a_exponent_bits, int b_exponent_bits, float (&c)[4], const unsigned (&a)[4],
                  unsigned b0, unsigned b1, Where where);

}  // namespace jitney::emulator
