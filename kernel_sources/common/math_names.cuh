// What <math.h> and <float.h> name beside the functions that NVRTC knows without them, and the
// limits of int and long long, for texts of a caller's. It is included behind a kernel's sources,
// none of which sees its macros.
#pragma once

#include "common/builtins.cuh"

// NVRTC 12.0 has no constant that is not finite.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define INFINITY __builtin_bit_cast(float, 0x7f800000u)
#define NAN __builtin_bit_cast(float, 0x7fc00000u)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ull)
#else
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#endif
#define HUGE_VALF INFINITY

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)

#define FLT_RADIX 2
#define FLT_ROUNDS 1
#define FLT_EVAL_METHOD 0
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_EXP 128
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.40282346638528859812e+38f
#define FLT_MIN 1.17549435082228750797e-38f
#define FLT_TRUE_MIN 1.40129846432481707092e-45f
#define FLT_EPSILON 1.19209289550781250000e-07f
#define FLT_HAS_SUBNORM 1
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_DECIMAL_DIG 17
#define DECIMAL_DIG 17
#define DBL_MIN_EXP (-1021)
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_EXP 1024
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.79769313486231570815e+308
#define DBL_MIN 2.22507385850720138309e-308
#define DBL_TRUE_MIN 4.94065645841246544177e-324
#define DBL_EPSILON 2.22044604925031308085e-16
#define DBL_HAS_SUBNORM 1

#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1ll)
#define ULLONG_MAX 18446744073709551615ull

namespace jitney {

template <class A, class B>
JITNEY_DEVICE bool isunordered(A x, B y) {
    return x != x || y != y;
}
template <class A, class B>
JITNEY_DEVICE bool isgreater(A x, B y) {
    return x > y;
}
template <class A, class B>
JITNEY_DEVICE bool isgreaterequal(A x, B y) {
    return x >= y;
}
template <class A, class B>
JITNEY_DEVICE bool isless(A x, B y) {
    return x < y;
}
template <class A, class B>
JITNEY_DEVICE bool islessequal(A x, B y) {
    return x <= y;
}
template <class A, class B>
JITNEY_DEVICE bool islessgreater(A x, B y) {
    return x < y || x > y;
}

JITNEY_DEVICE int fpclassify(float x) {
    const unsigned bits = __float_as_uint(x) & 0x7fffffffu;
    if (bits == 0) return FP_ZERO;
    if (bits < 0x00800000u) return FP_SUBNORMAL;
    if (bits < 0x7f800000u) return FP_NORMAL;
    return bits == 0x7f800000u ? FP_INFINITE : FP_NAN;
}
JITNEY_DEVICE int fpclassify(double x) {
    const long long bits = __double_as_longlong(x) & 0x7fffffffffffffffll;
    if (bits == 0) return FP_ZERO;
    if (bits < 0x0010000000000000ll) return FP_SUBNORMAL;
    if (bits < 0x7ff0000000000000ll) return FP_NORMAL;
    return bits == 0x7ff0000000000000ll ? FP_INFINITE : FP_NAN;
}
JITNEY_DEVICE bool isnormal(float x) {
    return fpclassify(x) == FP_NORMAL;
}
JITNEY_DEVICE bool isnormal(double x) {
    return fpclassify(x) == FP_NORMAL;
}

}  // namespace jitney
