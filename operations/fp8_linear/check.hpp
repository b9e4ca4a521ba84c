// The argument checks of the linear layer on FP8. What comes back is its tensors as matrices.
#pragma once

#include "jitney/fp8_linear.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

struct Fp8LinearCall {
    Tensor x;  // [rows, in_features]
    Tensor weight;
    Tensor y;             // [rows, out_features]
    Tensor x_codes;       // without data where nothing is saved
    Tensor weight_codes;  // likewise
};
Fp8LinearCall check(const Fp8LinearArgs& args, Data data = Data::present);

struct Fp8LinearBackwardCall {
    Tensor grad_y;        // [rows, out_features]
    Tensor grad_codes;    // without data
    Tensor x_codes;       // [rows, in_features]
    Tensor weight_codes;  // [out_features, in_features]
    std::optional<Tensor> grad_x;
    std::optional<Tensor> grad_weight;
};
Fp8LinearBackwardCall check(const Fp8LinearBackwardArgs& args, Data data = Data::present);

void check(const Fp8Recipe& recipe);
// A state of any recipe.
void check_state(const Tensor& state, Data data = Data::present);

// What the recipe casts x and weight to, and grad_y.
DType forward_format(const Fp8Recipe& recipe) noexcept;
DType backward_format(const Fp8Recipe& recipe) noexcept;

}  // namespace jitney::checks
