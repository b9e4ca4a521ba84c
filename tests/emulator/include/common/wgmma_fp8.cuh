// Twin of kernel_sources/common/wgmma_fp8.cuh.
#pragma once

#include "common/wgmma.cuh"

namespace jitney {

template <int format_a, int format_b, int blocks>
JITNEY_DEVICE void wgmma_fp8(float (&c)[blocks][4], WgmmaOperand a, WgmmaOperand b, bool adds,
                             emulator::Where where = emulator::Where::here()) {
    static_assert(format_a == kFp8E4m3 || format_a == kFp8E5m2);
    static_assert(format_b == kFp8E4m3 || format_b == kFp8E5m2);
    emulator::wgmma({.a_format = kWgmmaFormat<format_a>,
                     .b_format = kWgmmaFormat<format_b>,
                     .c = &c[0][0],
                     .columns = blocks * 8,
                     .a = a,
                     .b = b,
                     .adds = adds},
                    where);
}

}  // namespace jitney
