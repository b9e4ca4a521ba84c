// What of bf16 needs no instruction of its own.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

JITNEY_DEVICE float bf16_value(unsigned short bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

// fp32 to bf16 before sm_80: round to nearest even, what is too large becomes infinity, and NaN the
// one that the instruction gives.
JITNEY_DEVICE unsigned short bf16_bits_software(float x) {
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace jitney
