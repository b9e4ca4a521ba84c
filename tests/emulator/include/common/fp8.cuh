// Twin of kernel_sources/common/fp8.cuh. What has no assembly, the conversion in software, is the
// device's own.
#pragma once

#include "common/fp8_software.cuh"
#include "tests/emulator/machine/formats.hpp"

namespace jitney {

template <int format, bool software = false>
JITNEY_DEVICE unsigned fp8_pair(float low, float high) {
    static_assert(format == kFp8E4m3 || format == kFp8E5m2);
    if constexpr (software) {
        return fp8_bits_software<format>(low) | fp8_bits_software<format>(high) << 8;
    } else {
        constexpr int exponent_bits = format == kFp8E4m3 ? 4 : 5;
        return emulator::fp8_bits(low, exponent_bits) |
               static_cast<unsigned>(emulator::fp8_bits(high, exponent_bits)) << 8;
    }
}

template <int format, bool software = false>
JITNEY_DEVICE unsigned char fp8_bits(float x) {
    return static_cast<unsigned char>(fp8_pair<format, software>(x, 0.0f));
}

}  // namespace jitney
