// Warp-wide matrix products on the tensor cores (mma.sync.m16n8k16, sm_80+), fp32 accumulation.
// Lane l, with row = l / 4 and pair = 2 * (l % 4), holds
//   a (16x16): (row, pair), (row + 8, pair), (row, pair + 8), (row + 8, pair + 8), and the next
//   column b (16x8):  (pair, row), (pair + 8, row), and the next row c (16x8):  (row, pair), (row,
//   pair + 1), (row + 8, pair), (row + 8, pair + 1)
#pragma once

#include "common/builtins.cuh"
#include "common/constants.h"

namespace jitney {

// c += a * b
template <int format>
JITNEY_DEVICE void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (format == kBf16) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        static_assert(format == kFp16);
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

}  // namespace jitney
