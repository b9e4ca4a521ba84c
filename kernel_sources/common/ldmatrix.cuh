// Warp-wide loads of four 8x8 matrices of 16-bit elements from shared memory (ldmatrix, sm_75+).
// Lane l gives the 16-byte aligned address of row l % 8 of matrix l / 8. Register i of a lane
// then holds, of matrix i, the elements (l / 4, 2 * (l % 4)) and (l / 4, 2 * (l % 4) + 1);
// transposed: (2 * (l % 4), l / 4) and (2 * (l % 4) + 1, l / 4).
// What was written before a barrier is seen behind it; nothing else orders these loads, so that
// the compiler may mix them with arithmetic.
#pragma once

#include "common/shared.cuh"

namespace jitney {

JITNEY_DEVICE void ldmatrix_x4(unsigned (&matrices)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(row));
}

JITNEY_DEVICE void ldmatrix_x4_transposed(unsigned (&matrices)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(row));
}

}  // namespace jitney
