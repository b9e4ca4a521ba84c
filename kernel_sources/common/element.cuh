// The element types of tensors: what lies in memory, and its value as fp32.
#pragma once

#include "common/constants.h"
#include "common/convert.cuh"

namespace jitney {

template <int format>
struct Element;

template <>
struct Element<kFp32> {
    float stored;
    JITNEY_DEVICE static Element from(float value) { return {value}; }
    JITNEY_DEVICE float value() const { return stored; }
};

template <>
struct Element<kFp16> {
    unsigned short bits;
    JITNEY_DEVICE static Element from(float value) { return {fp16_bits(value)}; }
    JITNEY_DEVICE float value() const { return fp16_value(bits); }
    JITNEY_DEVICE static unsigned pair(float low, float high) { return fp16_pair(low, high); }
};

template <>
struct Element<kBf16> {
    unsigned short bits;
    JITNEY_DEVICE static Element from(float value) { return {bf16_bits(value)}; }
    JITNEY_DEVICE float value() const { return bf16_value(bits); }
    JITNEY_DEVICE static unsigned pair(float low, float high) { return bf16_pair(low, high); }
};

}  // namespace jitney
