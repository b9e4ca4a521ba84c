// A tensor map: how the tensor copy engine (TMA, sm_90+) sees a tensor in global memory. The driver
// makes its bits; a kernel takes one by value, within a __grid_constant__ parameter. Shared by host
// and device.
#pragma once

namespace jitney {

struct alignas(64) TensorMapBits {
    unsigned long long bits[16];
};

}  // namespace jitney
