// 16-bit floating formats without a header: storage types, and conversions that round to nearest
// even. bf16 has a conversion instruction from sm_80 on; below, the rounding is done on the bits.
#pragma once

#include "common/bf16.cuh"

namespace jitney {

JITNEY_DEVICE unsigned short fp16_bits(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

JITNEY_DEVICE float fp16_value(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

JITNEY_DEVICE unsigned short bf16_bits(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    return bf16_bits_software(x);
#endif
}

// Two elements in one register, `low` in the lower half (sm_80+).
JITNEY_DEVICE unsigned fp16_pair(float low, float high) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

JITNEY_DEVICE unsigned bf16_pair(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

}  // namespace jitney
