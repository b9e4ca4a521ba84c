// CUDA's vector types, with the alignment that they have on a GPU: AddressSanitizer's companion
// UndefinedBehaviorSanitizer sees an access through one at a misaligned address.
#pragma once

#define JITNEY_VECTOR_2(type, name, bytes)       \
    struct alignas(bytes) name {                 \
        type x, y;                               \
    };                                           \
    constexpr name make_##name(type x, type y) { \
        return {x, y};                           \
    }
#define JITNEY_VECTOR_4(type, name, bytes)                       \
    struct alignas(bytes) name {                                 \
        type x, y, z, w;                                         \
    };                                                           \
    constexpr name make_##name(type x, type y, type z, type w) { \
        return {x, y, z, w};                                     \
    }

JITNEY_VECTOR_2(unsigned char, uchar2, 2)
JITNEY_VECTOR_4(unsigned char, uchar4, 4)
JITNEY_VECTOR_2(unsigned short, ushort2, 4)
JITNEY_VECTOR_4(unsigned short, ushort4, 8)
JITNEY_VECTOR_2(int, int2, 8)
JITNEY_VECTOR_4(int, int4, 16)
JITNEY_VECTOR_2(unsigned, uint2, 8)
JITNEY_VECTOR_4(unsigned, uint4, 16)
JITNEY_VECTOR_2(float, float2, 8)
JITNEY_VECTOR_4(float, float4, 16)
JITNEY_VECTOR_2(double, double2, 16)
JITNEY_VECTOR_2(long long, longlong2, 16)
JITNEY_VECTOR_2(unsigned long long, ulonglong2, 16)

#undef JITNEY_VECTOR_2
#undef JITNEY_VECTOR_4

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
