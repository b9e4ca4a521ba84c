// What gated_activation is launched with; shared by host and device.
#pragma once

#include "norm/row_shape.h"

namespace jitney {

// What is done to the gate before it multiplies: the same numbers as the public jitney::Activation,
// whose name this one leaves alone.
enum GateFunction : int {
    kSilu = 0,      // x / (1 + e^-x)
    kGelu = 1,      // x * (1 + erf(x / sqrt(2))) / 2
    kGeluTanh = 2,  // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2
    kRelu2 = 3,     // max(x, 0)^2
};

// Rows of d elements; strides count elements from row to row.
struct GatedActivationParams {
    const void* gate;
    const void* up;
    void* out;  // may be the one or the other
    long long gate_stride;
    long long up_stride;
    long long out_stride;
    long long rows;
    int d;
    int pieces;               // of a row, each of which a block or some of its threads take
    const float* multiplier;  // of codes, where it is given
    float* scale;             // [rows], where each row makes its own; pieces is 1 then
};

}  // namespace jitney
