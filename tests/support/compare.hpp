// Comparison of a result with what was expected of it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// An element passes where |actual - expected| <= absolute + relative * |expected|. Infinities pass
// where they are equal; NaN never does, not even where NaN was expected.
struct Tolerance {
    double absolute = 0.0;
    double relative = 0.0;
};

struct Comparison {
    bool within = true;
    std::int64_t count = 0;
    std::int64_t failures = 0;
    double max_absolute = 0.0;  // over the finite elements, as the other two
    double max_relative = 0.0;
    double mean_absolute = 0.0;
    std::int64_t worst = -1;  // the row-major index of the element furthest beyond its tolerance
    // One line: the counts, the errors, and where the worst element is.
    std::string text;
};

// The two tensors have one shape; layouts and formats may differ.
Comparison compare(const HostTensor& actual, const HostTensor& expected, Tolerance tolerance);

// How far a 16-bit result may be off on average: 1e-3, and where the expected values are so large
// that their rounding alone comes near that, half an ulp of bf16 of their mean magnitude.
double mean_limit_of(const HostTensor& expected);

// Rounding of a result near 1 to this format, and a little of what a kernel of that format does.
Tolerance tolerance_of(DType dtype);

}  // namespace jitney::tests

// Checks with doctest that `actual` is close to `expected`, and says how it isn't.
#define JITNEY_CHECK_CLOSE(actual, expected, tolerance)                  \
    do {                                                                 \
        const ::jitney::tests::Comparison jitney_comparison =            \
            ::jitney::tests::compare(actual, expected, tolerance);       \
        CHECK_MESSAGE(jitney_comparison.within, jitney_comparison.text); \
    } while (false)
