// The 8-bit floating formats without their instructions. From fp32: round to nearest even, what is
// too large becomes the largest finite number of its sign, NaN stays NaN. Bit for bit what
// cvt.rn.satfinite gives, for every input.
#pragma once

#include "common/builtins.cuh"
#include "common/constants.h"

namespace jitney {

template <int format>
struct Fp8Layout;

template <>
struct Fp8Layout<kFp8E4m3> {
    static constexpr int mantissa_bits = 3;
    static constexpr unsigned smallest_normal = 0x3c800000u;  // 2^-6, as the bits of a float
    static constexpr float subnormal_magnet = 16384.0f;       // its last bit is 2^-9
    static constexpr unsigned largest = 0x7eu;                // 448
};

template <>
struct Fp8Layout<kFp8E5m2> {
    static constexpr int mantissa_bits = 2;
    static constexpr unsigned smallest_normal = 0x38800000u;  // 2^-14
    static constexpr float subnormal_magnet = 128.0f;         // its last bit is 2^-16
    static constexpr unsigned largest = 0x7bu;                // 57344
};

template <int format>
JITNEY_DEVICE unsigned fp8_bits_software(float x) {
    using Layout = Fp8Layout<format>;
    constexpr int dropped = 23 - Layout::mantissa_bits;
    const unsigned bits = __float_as_uint(x);
    const unsigned sign = bits >> 24 & 0x80u;
    const unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7fu;
    if (magnitude < Layout::smallest_normal) {
        // The addition rounds to whole units of the smallest subnormal number.
        const float rounded = __fadd_rn(__uint_as_float(magnitude), Layout::subnormal_magnet);
        return sign | (__float_as_uint(rounded) - __float_as_uint(Layout::subnormal_magnet));
    }
    // A carry out of the mantissa is the next exponent.
    const unsigned rounded = magnitude + ((1u << (dropped - 1)) - 1) + (magnitude >> dropped & 1u);
    const unsigned code = (rounded - (Layout::smallest_normal - (1u << 23))) >> dropped;
    return sign | (code < Layout::largest ? code : Layout::largest);
}

// E5M2 codes 0 and 1 of the four (or 2 and 3, where `upper`) as fp16, of which they are the upper
// bytes.
template <bool upper>
JITNEY_DEVICE unsigned fp8_unpack_e5m2(unsigned codes) {
    return __byte_perm(codes, 0, upper ? 0x3424 : 0x1404);
}

}  // namespace jitney
