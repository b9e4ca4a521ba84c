// Tensor-core products of 8-bit floating formats (sm_89+), fp32 accumulation.
//
// mma.m16n8k32: lane l, with row = l / 4 and four = 4 * (l % 4), holds four neighbours of k from
//   a (16x32): (row, four), (row + 8, four), (row, four + 16), (row + 8, four + 16)
//   b (32x8):  (four, row), (four + 16, row)
// and c as mma.m16n8k16 does. sm_89 and sm_120 have a unit for it, whose sums keep about 14 bits
// below the largest product. sm_90 and sm_100 have none: the compiler makes two products of fp16
// and two additions of it. There a kernel does better to unpack by itself: every code of both
// formats is exact in fp16.
#pragma once

#include "common/fp8_software.cuh"

namespace jitney {

// Codes 0 and 1 of the four (or 2 and 3, where `upper`) as fp16.
template <int format, bool upper>
JITNEY_DEVICE unsigned fp8_unpack(unsigned codes) {
    unsigned pair;
    if constexpr (format == kFp8E4m3) {
        if constexpr (upper) {
            asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rn.f16x2.e4m3x2 %0, h;}"
                : "=r"(pair)
                : "r"(codes));
        } else {
            asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rn.f16x2.e4m3x2 %0, l;}"
                : "=r"(pair)
                : "r"(codes));
        }
    } else {
        static_assert(format == kFp8E5m2);
        pair = fp8_unpack_e5m2<upper>(codes);
    }
    return pair;
}

// c += a * b
template <int format_a, int format_b>
JITNEY_DEVICE void mma_m16n8k32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#define JITNEY_MMA_M16N8K32(formats)                                           \
    asm("mma.sync.aligned.m16n8k32.row.col.f32." formats                       \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (format_a == kFp8E4m3 && format_b == kFp8E4m3) {
        JITNEY_MMA_M16N8K32("e4m3.e4m3");
    } else if constexpr (format_a == kFp8E4m3) {
        JITNEY_MMA_M16N8K32("e4m3.e5m2");
    } else if constexpr (format_b == kFp8E4m3) {
        JITNEY_MMA_M16N8K32("e5m2.e4m3");
    } else {
        JITNEY_MMA_M16N8K32("e5m2.e5m2");
    }
#undef JITNEY_MMA_M16N8K32
}

}  // namespace jitney
