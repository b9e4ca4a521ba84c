// Twin of kernel_sources/common/wgmma.cuh: until they are waited for, accumulators hold NaN, and
// whoever settles them, changes registers of a, or writes what is multiplied is reported.
#pragma once

#include "common/constants.h"
#include "common/wgmma_operand.cuh"
#include "tests/emulator/twins/wgmma.hpp"

namespace jitney {

JITNEY_DEVICE void wgmma_begin() {
    emulator::wgmma_begin();
}

JITNEY_DEVICE void wgmma_commit() {
    emulator::wgmma_commit();
}

template <int pending>
JITNEY_DEVICE void wgmma_wait(emulator::Where where = emulator::Where::here()) {
    emulator::wgmma_wait(pending, where);
}

template <int blocks>
JITNEY_DEVICE void wgmma_settle(float (&c)[blocks][4],
                                emulator::Where where = emulator::Where::here()) {
    emulator::wgmma_settle(&c[0][0], where);
}

JITNEY_DEVICE void use_from_here(float&) {}

template <int format>
constexpr emulator::WgmmaFormat kWgmmaFormat = format == kBf16      ? emulator::WgmmaFormat::bf16
                                               : format == kFp16    ? emulator::WgmmaFormat::fp16
                                               : format == kFp8E4m3 ? emulator::WgmmaFormat::e4m3
                                                                    : emulator::WgmmaFormat::e5m2;

template <int format, bool b_along_n, int blocks>
JITNEY_DEVICE void wgmma(float (&c)[blocks][4], WgmmaOperand a, WgmmaOperand b, bool adds,
                         emulator::Where where = emulator::Where::here()) {
    static_assert(format == kBf16 || format == kFp16 || (format == kFp8E4m3 && !b_along_n));
    emulator::wgmma({.a_format = kWgmmaFormat<format>,
                     .b_format = kWgmmaFormat<format>,
                     .c = &c[0][0],
                     .columns = blocks * 8,
                     .a = a,
                     .b = b,
                     .b_along_n = b_along_n,
                     .adds = adds},
                    where);
}
template <int format, bool b_along_n, int blocks>
JITNEY_DEVICE void wgmma(float (&c)[blocks][4], const unsigned (&a)[4], WgmmaOperand b, bool adds,
                         emulator::Where where = emulator::Where::here()) {
    static_assert(format == kBf16 || format == kFp16 || (format == kFp8E4m3 && !b_along_n));
    emulator::wgmma({.a_format = kWgmmaFormat<format>,
                     .b_format = kWgmmaFormat<format>,
                     .c = &c[0][0],
                     .columns = blocks * 8,
                     .a_registers = a,
                     .b = b,
                     .b_along_n = b_along_n,
                     .adds = adds},
                    where);
}

}  // namespace jitney
