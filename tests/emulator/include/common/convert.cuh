// Twin of kernel_sources/common/convert.cuh. bf16 is rounded by the device's own code for GPUs that
// have no instruction for it, and gives the same.
#pragma once

#include "common/bf16.cuh"
#include "tests/emulator/machine/formats.hpp"

namespace jitney {

JITNEY_DEVICE unsigned short fp16_bits(float x) {
    return emulator::fp16_bits(x);
}

JITNEY_DEVICE float fp16_value(unsigned short bits) {
    return emulator::fp16_value(bits);
}

JITNEY_DEVICE unsigned short bf16_bits(float x) {
    return bf16_bits_software(x);
}

JITNEY_DEVICE unsigned fp16_pair(float low, float high) {
    return fp16_bits(low) | static_cast<unsigned>(fp16_bits(high)) << 16;
}

JITNEY_DEVICE unsigned bf16_pair(float low, float high) {
    return bf16_bits(low) | static_cast<unsigned>(bf16_bits(high)) << 16;
}

}  // namespace jitney
