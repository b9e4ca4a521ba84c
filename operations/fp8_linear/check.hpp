// The argument checks of the linear layer on FP8.
#pragma once

#include "jitney/fp8_linear.hpp"
#include "operations/fp8_linear/choose.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

policy::Fp8LinearProblem check(const Fp8LinearArgs& args, Data data = Data::present);
policy::Fp8LinearProblem check(const Fp8LinearBackwardArgs& args, Data data = Data::present);
policy::Fp8LinearProblem check(const Fp8LinearInferenceArgs& args, Data data = Data::present);

// Whether weight has a scale a block. A scale that could be of blocks and of channels is the same
// number in either case: out_features is 1 then, and in_features at most 128.
bool has_blocks(const Fp8LinearInferenceArgs& args) noexcept;

void check(const Fp8Recipe& recipe);
// A state of any recipe.
void check_state(const Tensor& state, Data data = Data::present);

// What the recipe casts x and weight to, and grad_y.
DType forward_format(const Fp8Recipe& recipe) noexcept;
DType backward_format(const Fp8Recipe& recipe) noexcept;

}  // namespace jitney::checks
