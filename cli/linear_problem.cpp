#include "cli/linear_problem.hpp"

#include <CLI/CLI.hpp>

#include "cli/errors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

void Fp8LinearProblem::add_to(CLI::App& command) {
    add_shape(command, "--x", x, "Shape of x: rows,in_features, or more sizes ahead")->required();
    add_shape(command, "--weight", weight, "Shape of the weight: out_features,in_features")
        ->required();
    form.add_to(command);
    command.add_flag("--save", saves, "The codes are kept for a backward call");
    command.add_flag("--backward", backward, "The backward call, which makes all gradients");
}

std::variant<Fp8LinearArgs, Fp8LinearBackwardArgs> Fp8LinearProblem::arguments(
    Device device) const {
    if (saves && backward) {
        refuse("--save is of the forward call, which --backward leaves out: give one of them");
    }
    require_dims("--weight", weight, 2, "out_features,in_features");
    const DType dtype = form.dtype();
    Shape output = x;
    output.back() = weight[0];
    const Tensor input = shaped("--x", x, dtype, device);
    const Tensor weights = shaped("--weight", weight, dtype, device);
    const Tensor result = shaped("--x", output, dtype, device);
    std::optional<Tensor> bias;
    if (const auto bias_dtype = form.bias_dtype()) {
        bias = shaped("--bias", {weight[0]}, *bias_dtype, device);
    }
    const Fp8Recipe recipe = form.recipe();
    const Tensor state = shaped("the state", {3, fp8_state_columns(recipe)}, DType::fp32, device);
    const DType codes = recipe.formats == Fp8Formats::e5m2 ? DType::fp8_e5m2 : DType::fp8_e4m3;
    const Fp8LinearSaved saved = {shaped("--x", x, codes, device),
                                  shaped("--weight", weight, codes, device),
                                  shaped("the scales", {2}, DType::fp32, device)};
    if (backward) {
        Fp8LinearBackwardArgs args;
        args.grad_y = result;
        args.saved = saved;
        args.grad_x = input;
        args.grad_weight = weights;
        args.grad_bias = bias;
        args.state = state;
        args.recipe = recipe;
        args.fast_accum = form.fast_accum;
        return args;
    }
    Fp8LinearArgs args;
    args.x = input;
    args.weight = weights;
    args.bias = bias;
    args.y = result;
    args.state = state;
    if (saves) args.saved = saved;
    args.recipe = recipe;
    args.fast_accum = form.fast_accum;
    return args;
}

}  // namespace jitney::cli
