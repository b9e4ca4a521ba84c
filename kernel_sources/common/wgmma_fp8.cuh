// Products of a warpgroup of 8-bit floating formats, any two of them, both operands in shared
// memory with their rows along k (wgmma.cuh, wgmma_operand.cuh): 32 of k an instruction. The sums
// keep about 14 bits below the largest product.
#pragma once

#include "common/wgmma.cuh"

namespace jitney {

template <int columns>
struct WgmmaFp8Columns;

// clang-format off
#define JITNEY_WGMMA_FP8_COLUMNS(n, x0, x1, x2)                                                    \
    template <>                                                                                    \
    struct WgmmaFp8Columns<n> {                                                                    \
        template <int format_a, int format_b>                                                      \
        JITNEY_DEVICE static void multiply(float (&c)[n / 8][4], WgmmaOperand a, WgmmaOperand b,   \
                                           int adds) {                                             \
            if constexpr (format_a == kFp8E4m3 && format_b == kFp8E4m3) {                          \
                JITNEY_WGMMA(n, "k32.f32.e4m3.e4m3", "%" #x0, x1, x2, "",                          \
                             "l"(a), "l"(b), "r"(adds));                                           \
            } else if constexpr (format_a == kFp8E4m3) {                                           \
                JITNEY_WGMMA(n, "k32.f32.e4m3.e5m2", "%" #x0, x1, x2, "",                          \
                             "l"(a), "l"(b), "r"(adds));                                           \
            } else if constexpr (format_b == kFp8E4m3) {                                           \
                JITNEY_WGMMA(n, "k32.f32.e5m2.e4m3", "%" #x0, x1, x2, "",                          \
                             "l"(a), "l"(b), "r"(adds));                                           \
            } else {                                                                               \
                JITNEY_WGMMA(n, "k32.f32.e5m2.e5m2", "%" #x0, x1, x2, "",                          \
                             "l"(a), "l"(b), "r"(adds));                                           \
            }                                                                                      \
        }                                                                                          \
    };

JITNEY_WGMMA_FP8_COLUMNS(16, 8, 9, 10)
JITNEY_WGMMA_FP8_COLUMNS(32, 16, 17, 18)
JITNEY_WGMMA_FP8_COLUMNS(48, 24, 25, 26)
JITNEY_WGMMA_FP8_COLUMNS(64, 32, 33, 34)
JITNEY_WGMMA_FP8_COLUMNS(80, 40, 41, 42)
JITNEY_WGMMA_FP8_COLUMNS(96, 48, 49, 50)
JITNEY_WGMMA_FP8_COLUMNS(112, 56, 57, 58)
JITNEY_WGMMA_FP8_COLUMNS(128, 64, 65, 66)
JITNEY_WGMMA_FP8_COLUMNS(144, 72, 73, 74)
JITNEY_WGMMA_FP8_COLUMNS(160, 80, 81, 82)
JITNEY_WGMMA_FP8_COLUMNS(176, 88, 89, 90)
JITNEY_WGMMA_FP8_COLUMNS(192, 96, 97, 98)
JITNEY_WGMMA_FP8_COLUMNS(208, 104, 105, 106)
JITNEY_WGMMA_FP8_COLUMNS(224, 112, 113, 114)
JITNEY_WGMMA_FP8_COLUMNS(240, 120, 121, 122)
JITNEY_WGMMA_FP8_COLUMNS(256, 128, 129, 130)
// clang-format on

// c += a * b; where `adds` is false, c = a * b.
template <int format_a, int format_b, int blocks>
JITNEY_DEVICE void wgmma_fp8(float (&c)[blocks][4], WgmmaOperand a, WgmmaOperand b, bool adds) {
    WgmmaFp8Columns<blocks * 8>::template multiply<format_a, format_b>(c, a, b, adds ? 1 : 0);
}

}  // namespace jitney
