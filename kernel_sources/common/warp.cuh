// Warps: which one this is, and reductions over its lanes.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// The warp's number in its (one-dimensional) block, in a form that the compiler knows to be the
// same in all lanes.
JITNEY_DEVICE int warp_index() {
    return __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / kWarpSize, 0);
}

// A value that is the same in all lanes, in a form that the compiler knows to be so.
JITNEY_DEVICE int same_in_warp(int value) {
    return __shfl_sync(kAllLanes, value, 0);
}

// The address that lane `lane` has.
JITNEY_DEVICE const char* address_of_lane(const char* mine, int lane) {
    const auto bits = reinterpret_cast<unsigned long long>(mine);
    const unsigned low = __shfl_sync(kAllLanes, static_cast<unsigned>(bits), lane);
    const unsigned high = __shfl_sync(kAllLanes, static_cast<unsigned>(bits >> 32), lane);
    return reinterpret_cast<const char*>(static_cast<unsigned long long>(high) << 32 | low);
}

// Over groups of `width` neighbouring lanes; every lane gets its group's result.
template <int width = kWarpSize>
JITNEY_DEVICE float warp_max(float x) {
    for (int step = width / 2; step > 0; step /= 2) {
        x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
    }
    return x;
}

// The bits that any lane has. sm_80 or newer.
template <class Bits>
JITNEY_DEVICE Bits warp_or(Bits bits) {
    return __reduce_or_sync(kAllLanes, bits);
}

template <int width = kWarpSize, class Number>
JITNEY_DEVICE Number warp_sum(Number x) {
    for (int step = width / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(kAllLanes, x, step);
    return x;
}

// A 4x4 transposition among four neighbouring lanes, of which this is number `four`: word i of lane
// j becomes word j of lane i.
JITNEY_DEVICE void transpose_quad(unsigned (&words)[4], int four) {
#pragma unroll
    for (int step = 1; step <= 2; step *= 2) {
        const bool upper = (four & step) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if ((i & step) != 0) continue;
            // What this lane keeps stays where it is, and what it gives is answered in its place.
            const unsigned given = upper ? words[i] : words[i + step];
            const unsigned got = __shfl_xor_sync(kAllLanes, given, step);
            words[i] = upper ? got : words[i];
            words[i + step] = upper ? words[i + step] : got;
        }
    }
}

}  // namespace jitney
