// Values as codes of an 8-bit floating format.
#pragma once

#include "common/fp8.cuh"
#include "common/vector.cuh"

namespace jitney {

// Codes of values times a multiplier.
template <int format, bool software = false, int width>
JITNEY_DEVICE Vector<unsigned char, width> fp8_codes_of(const float (&values)[width],
                                                        float multiplier) {
    if constexpr (width % 2 != 0) {
        Vector<unsigned char, width> codes;
#pragma unroll
        for (int j = 0; j < width; ++j)
            codes.items[j] = fp8_bits<format, software>(__fmul_rn(values[j], multiplier));
        return codes;
    } else {
        Vector<unsigned short, width / 2> pairs;
#pragma unroll
        for (int j = 0; j < width / 2; ++j) {
            pairs.items[j] = static_cast<unsigned short>(fp8_pair<format, software>(
                __fmul_rn(values[2 * j], multiplier), __fmul_rn(values[2 * j + 1], multiplier)));
        }
        return __builtin_bit_cast(Vector<unsigned char, width>, pairs);
    }
}

}  // namespace jitney
