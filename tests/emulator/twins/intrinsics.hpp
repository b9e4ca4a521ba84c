// Functions of one instruction that need no header on a GPU.
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tests/emulator/machine/device.hpp"

inline float __int_as_float(int bits) {
    return std::bit_cast<float>(bits);
}
inline float __uint_as_float(unsigned bits) {
    return std::bit_cast<float>(bits);
}
inline int __float_as_int(float value) {
    return std::bit_cast<int>(value);
}
inline unsigned __float_as_uint(float value) {
    return std::bit_cast<unsigned>(value);
}

inline int __popc(unsigned value) {
    return std::popcount(value);
}
inline int __clz(int value) {
    return std::countl_zero(static_cast<unsigned>(value));
}
inline int __ffs(int value) {
    return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
// Byte i of the result is the byte of b:a that nibble i of the selector names.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; ++i)
        result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}

#define JITNEY_MINIMUM_AND_MAXIMUM(type) \
    constexpr type min(type a, type b) { \
        return b < a ? b : a;            \
    }                                    \
    constexpr type max(type a, type b) { \
        return a < b ? b : a;            \
    }
JITNEY_MINIMUM_AND_MAXIMUM(int)
JITNEY_MINIMUM_AND_MAXIMUM(unsigned)
JITNEY_MINIMUM_AND_MAXIMUM(long)
JITNEY_MINIMUM_AND_MAXIMUM(unsigned long)
JITNEY_MINIMUM_AND_MAXIMUM(long long)
JITNEY_MINIMUM_AND_MAXIMUM(unsigned long long)
#undef JITNEY_MINIMUM_AND_MAXIMUM
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}

// Loads and stores with a hint for the caches are loads and stores.
template <class T>
T __ldg(const T* address) {
    return *address;
}
template <class T>
T __ldcs(const T* address) {
    return *address;
}
template <class T>
T __ldcg(const T* address) {
    return *address;
}
template <class T>
void __stcs(T* address, T value) {
    *address = value;
}

[[noreturn]] inline void __trap(jitney::emulator::Where where = jitney::emulator::Where::here()) {
    jitney::emulator::fault("executes a trap", where);
}
