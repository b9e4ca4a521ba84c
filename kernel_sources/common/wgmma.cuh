// Products of a warpgroup, four consecutive warps, on the tensor cores (wgmma, exactly sm_90a):
// c += a * b, c of 64 rows and n columns in fp32 registers, a from registers or shared memory, b
// from shared memory (wgmma_operand.cuh). 16 of k an instruction, 32 for 8-bit formats.
//
// Warp w of the four has rows 16 w to 16 w + 15. Lane l, with row = l / 4 and pair = 2 * (l % 4),
// holds of columns 8 i to 8 i + 7, as c[i], (row, pair), (row, pair + 1), (row + 8, pair) and (row
// + 8, pair + 1); and of a in registers what mma.m16n8k16 takes (mma.cuh).
//
// Products run on behind the instruction: between wgmma_begin and the wait that covers them nobody
// may touch c, a in registers, or the memory of a and b.
#pragma once

#include "common/constants.h"
#include "common/wgmma_operand.cuh"

namespace jitney {

// What this warpgroup's threads did to registers before comes before the products that follow.
JITNEY_DEVICE void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the group of products since the last one.
JITNEY_DEVICE void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most `pending` of the newest groups run on.
template <int pending>
JITNEY_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Has accumulators read behind this point, and not before: the compiler does not know that they
// come into being at a wait.
template <int blocks>
JITNEY_DEVICE void wgmma_settle(float (&c)[blocks][4]) {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+f"(c[block][i])::"memory");
    }
}

// Has a value used behind this point, and not before: a load that the first use waits for does not
// hold up the products that are handed over until here.
JITNEY_DEVICE void use_from_here(float& value) {
    asm volatile("" : "+f"(value)::"memory");
}

// The products with c of `columns` columns, each a row of 16 more registers a thread than the last.
template <int columns>
struct WgmmaColumns;

// The registers of c, as text and as operands.
// clang-format off
#define JITNEY_C_TEXT_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define JITNEY_C_TEXT_32 JITNEY_C_TEXT_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define JITNEY_C_TEXT_48 JITNEY_C_TEXT_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define JITNEY_C_TEXT_64 JITNEY_C_TEXT_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define JITNEY_C_TEXT_80 JITNEY_C_TEXT_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define JITNEY_C_TEXT_96 JITNEY_C_TEXT_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define JITNEY_C_TEXT_112 JITNEY_C_TEXT_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define JITNEY_C_TEXT_128 JITNEY_C_TEXT_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define JITNEY_C_TEXT_144 JITNEY_C_TEXT_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define JITNEY_C_TEXT_160 JITNEY_C_TEXT_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define JITNEY_C_TEXT_176 JITNEY_C_TEXT_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define JITNEY_C_TEXT_192 JITNEY_C_TEXT_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define JITNEY_C_TEXT_208 JITNEY_C_TEXT_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define JITNEY_C_TEXT_224 JITNEY_C_TEXT_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define JITNEY_C_TEXT_240 JITNEY_C_TEXT_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define JITNEY_C_TEXT_256 JITNEY_C_TEXT_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define JITNEY_C(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define JITNEY_C_16 JITNEY_C(0), JITNEY_C(1)
#define JITNEY_C_32 JITNEY_C_16, JITNEY_C(2), JITNEY_C(3)
#define JITNEY_C_48 JITNEY_C_32, JITNEY_C(4), JITNEY_C(5)
#define JITNEY_C_64 JITNEY_C_48, JITNEY_C(6), JITNEY_C(7)
#define JITNEY_C_80 JITNEY_C_64, JITNEY_C(8), JITNEY_C(9)
#define JITNEY_C_96 JITNEY_C_80, JITNEY_C(10), JITNEY_C(11)
#define JITNEY_C_112 JITNEY_C_96, JITNEY_C(12), JITNEY_C(13)
#define JITNEY_C_128 JITNEY_C_112, JITNEY_C(14), JITNEY_C(15)
#define JITNEY_C_144 JITNEY_C_128, JITNEY_C(16), JITNEY_C(17)
#define JITNEY_C_160 JITNEY_C_144, JITNEY_C(18), JITNEY_C(19)
#define JITNEY_C_176 JITNEY_C_160, JITNEY_C(20), JITNEY_C(21)
#define JITNEY_C_192 JITNEY_C_176, JITNEY_C(22), JITNEY_C(23)
#define JITNEY_C_208 JITNEY_C_192, JITNEY_C(24), JITNEY_C(25)
#define JITNEY_C_224 JITNEY_C_208, JITNEY_C(26), JITNEY_C(27)
#define JITNEY_C_240 JITNEY_C_224, JITNEY_C(28), JITNEY_C(29)
#define JITNEY_C_256 JITNEY_C_240, JITNEY_C(30), JITNEY_C(31)

// One instruction: what follows m64n, its operands a and b, the predicate that is 0 where c does not
// count before, and what stands behind.
#define JITNEY_WGMMA(n, kind, text_a, text_b, adds, behind, ...)                     \
    asm volatile("{.reg .pred adds;\nsetp.ne.b32 adds, %" #adds ", 0;\n"             \
                 "wgmma.mma_async.sync.aligned.m64n" #n kind " {" JITNEY_C_TEXT_##n  \
                 "}, " text_a ", %" #text_b ", adds, 1, 1" behind ";}"               \
                 : JITNEY_C_##n : __VA_ARGS__)

// Those of n columns, whose operands other than c are numbered from x0 on.
#define JITNEY_WGMMA_COLUMNS(n, x0, x1, x2, x3, x4, x5, x6)                                        \
    template <>                                                                                    \
    struct WgmmaColumns<n> {                                                                       \
        template <int format, int b_along_n>                                                       \
        JITNEY_DEVICE static void shared(float (&c)[n / 8][4], WgmmaOperand a, WgmmaOperand b,      \
                                         int adds) {                                               \
            if constexpr (format == kBf16) {                                                       \
                JITNEY_WGMMA(n, "k16.f32.bf16.bf16", "%" #x0, x1, x2, ", 0, %" #x3,                 \
                             "l"(a), "l"(b), "r"(adds), "n"(b_along_n));                            \
            } else if constexpr (format == kFp16) {                                                \
                JITNEY_WGMMA(n, "k16.f32.f16.f16", "%" #x0, x1, x2, ", 0, %" #x3,                   \
                             "l"(a), "l"(b), "r"(adds), "n"(b_along_n));                            \
            } else {                                                                               \
                static_assert(format == kFp8E4m3 && b_along_n == 0);                               \
                JITNEY_WGMMA(n, "k32.f32.e4m3.e4m3", "%" #x0, x1, x2, "",                           \
                             "l"(a), "l"(b), "r"(adds));                                           \
            }                                                                                      \
        }                                                                                          \
        template <int format, int b_along_n>                                                       \
        JITNEY_DEVICE static void registers(float (&c)[n / 8][4], const unsigned (&a)[4],           \
                                            WgmmaOperand b, int adds) {                            \
            constexpr int along = b_along_n;                                                       \
            if constexpr (format == kBf16) {                                                       \
                JITNEY_WGMMA(n, "k16.f32.bf16.bf16", JITNEY_A_TEXT(x0, x1, x2, x3), x4, x5,         \
                             ", %" #x6, JITNEY_A, "l"(b), "r"(adds), "n"(along));                   \
            } else if constexpr (format == kFp16) {                                                \
                JITNEY_WGMMA(n, "k16.f32.f16.f16", JITNEY_A_TEXT(x0, x1, x2, x3), x4, x5,           \
                             ", %" #x6, JITNEY_A, "l"(b), "r"(adds), "n"(along));                   \
            } else {                                                                               \
                static_assert(format == kFp8E4m3 && b_along_n == 0);                               \
                JITNEY_WGMMA(n, "k32.f32.e4m3.e4m3", JITNEY_A_TEXT(x0, x1, x2, x3), x4, x5, "",     \
                             JITNEY_A, "l"(b), "r"(adds));                                         \
            }                                                                                      \
        }                                                                                          \
    };
#define JITNEY_A_TEXT(x0, x1, x2, x3) "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}"
#define JITNEY_A "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

JITNEY_WGMMA_COLUMNS(16, 8, 9, 10, 11, 12, 13, 14)
JITNEY_WGMMA_COLUMNS(32, 16, 17, 18, 19, 20, 21, 22)
JITNEY_WGMMA_COLUMNS(48, 24, 25, 26, 27, 28, 29, 30)
JITNEY_WGMMA_COLUMNS(64, 32, 33, 34, 35, 36, 37, 38)
JITNEY_WGMMA_COLUMNS(80, 40, 41, 42, 43, 44, 45, 46)
JITNEY_WGMMA_COLUMNS(96, 48, 49, 50, 51, 52, 53, 54)
JITNEY_WGMMA_COLUMNS(112, 56, 57, 58, 59, 60, 61, 62)
JITNEY_WGMMA_COLUMNS(128, 64, 65, 66, 67, 68, 69, 70)
JITNEY_WGMMA_COLUMNS(144, 72, 73, 74, 75, 76, 77, 78)
JITNEY_WGMMA_COLUMNS(160, 80, 81, 82, 83, 84, 85, 86)
JITNEY_WGMMA_COLUMNS(176, 88, 89, 90, 91, 92, 93, 94)
JITNEY_WGMMA_COLUMNS(192, 96, 97, 98, 99, 100, 101, 102)
JITNEY_WGMMA_COLUMNS(208, 104, 105, 106, 107, 108, 109, 110)
JITNEY_WGMMA_COLUMNS(224, 112, 113, 114, 115, 116, 117, 118)
JITNEY_WGMMA_COLUMNS(240, 120, 121, 122, 123, 124, 125, 126)
JITNEY_WGMMA_COLUMNS(256, 128, 129, 130, 131, 132, 133, 134)
// clang-format on

// c += a * b; where `adds` is false, c = a * b. `b_along_n`: rows of b run along n, not along k.
template <int format, bool b_along_n, int blocks>
JITNEY_DEVICE void wgmma(float (&c)[blocks][4], WgmmaOperand a, WgmmaOperand b, bool adds) {
    WgmmaColumns<blocks * 8>::template shared<format, b_along_n ? 1 : 0>(c, a, b, adds ? 1 : 0);
}
template <int format, bool b_along_n, int blocks>
JITNEY_DEVICE void wgmma(float (&c)[blocks][4], const unsigned (&a)[4], WgmmaOperand b, bool adds) {
    WgmmaColumns<blocks * 8>::template registers<format, b_along_n ? 1 : 0>(c, a, b, adds ? 1 : 0);
}

}  // namespace jitney
