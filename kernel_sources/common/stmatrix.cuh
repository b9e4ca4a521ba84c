// Warp-wide stores of four 8x8 matrices of 16-bit elements to shared memory (stmatrix, sm_90+): the
// counterpart of ldmatrix_x4. Lane l gives the 16-byte aligned address of row l % 8 of matrix l /
// 8, and has in register i, of matrix i, the elements (l / 4, 2 * (l % 4)) and the next.
#pragma once

#include "common/shared.cuh"

namespace jitney {

JITNEY_DEVICE void stmatrix_x4(SharedAddress row, unsigned m0, unsigned m1, unsigned m2,
                               unsigned m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(m0), "r"(m1), "r"(m2), "r"(m3)
                 : "memory");
}

// The same, each matrix transposed: element (i, j) goes to place i of row j.
JITNEY_DEVICE void stmatrix_x4_transposed(SharedAddress row, unsigned m0, unsigned m1, unsigned m2,
                                          unsigned m3) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(m0), "r"(m1), "r"(m2), "r"(m3)
        : "memory");
}

}  // namespace jitney
