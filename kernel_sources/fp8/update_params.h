// What fp8_update is launched with; shared by host and device.
#pragma once

namespace jitney {

// A tensor's row of the state, after a step.
struct Fp8UpdateRow {
    float* state;   // null: no such row
    float largest;  // number of the tensor's format
    float* used;    // null, or receives the scale that the step's codes have
};

// *out = fp8_product_scale(*a, *b), of scales as the step used them.
struct Fp8UpdateProduct {
    float* out;  // null: no such product
    const float* a;
    const float* b;
};

struct Fp8UpdateParams {
    Fp8UpdateRow rows[2];
    Fp8UpdateProduct products[2];
    int history;  // steps that are remembered; 0: scaling is dynamic, and there is nothing to roll
    int latest;   // whether the latest amax counts alone, instead of the window's largest
    float margin_power;  // 2^margin
};

}  // namespace jitney
