// What rms_norm is launched with; shared by host and device.
#pragma once

#include "norm/row_shape.h"

namespace jitney {

// Where a call gives none.
constexpr float kDefaultNormEps = 1e-6f;

// Rows of d elements; strides count elements from row to row.
struct RmsNormParams {
    const void* x;
    const void* residual;  // added to x first
    void* sum;             // receives x + residual; may be the one or the other
    void* out;             // may be x or residual
    const void* weight;    // [d]
    const void* bias;      // [d]
    long long x_stride;
    long long residual_stride;
    long long sum_stride;
    long long out_stride;
    long long rows;
    int d;
    float eps;
    const float* multiplier;  // of codes, where it is given
    float* scale;             // [rows], where each row makes its own
};

}  // namespace jitney
