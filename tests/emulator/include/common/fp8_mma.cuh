// Twin of kernel_sources/common/fp8_mma.cuh.
#pragma once

#include "common/fp8_software.cuh"
#include "tests/emulator/machine/formats.hpp"
#include "tests/emulator/twins/tensor_core.hpp"

namespace jitney {

template <int format>
constexpr int kExponentBits = format == kFp8E4m3 ? 4 : 5;

template <int format, bool upper>
JITNEY_DEVICE unsigned fp8_unpack(unsigned codes) {
    static_assert(format == kFp8E4m3 || format == kFp8E5m2);
    if constexpr (format == kFp8E5m2) return fp8_unpack_e5m2<upper>(codes);
    unsigned pair = 0;
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned code = codes >> 8 * (i + (upper ? 2 : 0)) & 0xff;
        const float value =
            emulator::fp8_value(static_cast<std::uint8_t>(code), kExponentBits<format>);
        pair |= static_cast<unsigned>(emulator::fp16_bits(value)) << 16 * i;
    }
    return pair;
}

template <int format_a, int format_b>
JITNEY_DEVICE void mma_m16n8k32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                emulator::Where where = emulator::Where::here()) {
    emulator::mma_m16n8k32(kExponentBits<format_a>, kExponentBits<format_b>, c, a, b0, b1, where);
}

}  // namespace jitney
