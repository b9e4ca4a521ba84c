// What kernels of rows write: values in a format, or codes of E4M3.
#pragma once

#include "common/element.cuh"
#include "common/nan_max.cuh"
#include "common/vector.cuh"
#include "fp8/codes.cuh"
#include "fp8/scale.h"

namespace jitney {

#if __CUDA_ARCH__ >= 800
constexpr bool kConvertsPairs = true;
#else
constexpr bool kConvertsPairs = false;
#endif

// Values as elements of T, rounded to nearest even.
template <class T, int width>
JITNEY_DEVICE Vector<T, width> elements_of(const float (&values)[width]) {
    if constexpr (kConvertsPairs && sizeof(T) == 2 && width % 2 == 0) {
        Vector<unsigned, width / 2> pairs;
#pragma unroll
        for (int j = 0; j < width / 2; ++j)
            pairs.items[j] = T::pair(values[2 * j], values[2 * j + 1]);
        return __builtin_bit_cast(Vector<T, width>, pairs);
    } else {
        Vector<T, width> elements;
#pragma unroll
        for (int j = 0; j < width; ++j)
            elements.items[j] = T::from(values[j]);
        return elements;
    }
}

// NaN where one of them is.
template <int width>
JITNEY_DEVICE float largest_magnitude(const float (&values)[width]) {
    float largest = 0.0f;
#pragma unroll
    for (int j = 0; j < width; ++j)
        largest = max_or_nan(largest, fabsf(values[j]));
    return largest;
}

}  // namespace jitney
