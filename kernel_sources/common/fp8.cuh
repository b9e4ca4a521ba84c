// fp32 to the 8-bit floating formats E4M3 and E5M2: round to nearest even, saturating, NaN stays
// NaN. A clamp before it would make a number of NaN. There is an instruction from sm_89 on; below,
// or where `software` asks for it, the bits are computed.
#pragma once

#include "common/fp8_software.cuh"

namespace jitney {

// Two codes, `low` in the lower byte.
template <int format, bool software = false>
JITNEY_DEVICE unsigned fp8_pair(float low, float high) {
    static_assert(format == kFp8E4m3 || format == kFp8E5m2);
#if __CUDA_ARCH__ >= 890
    if constexpr (!software) {
        unsigned short pair;
        if constexpr (format == kFp8E4m3) {
            asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        } else {
            asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        }
        return pair;
    }
#endif
    return fp8_bits_software<format>(low) | fp8_bits_software<format>(high) << 8;
}

// One code.
template <int format, bool software = false>
JITNEY_DEVICE unsigned char fp8_bits(float x) {
    return static_cast<unsigned char>(fp8_pair<format, software>(x, 0.0f));
}

}  // namespace jitney
