#include "operations/fp8_linear/check.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/fp8/state.h"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/check_enum.hpp"
#include "operations/fp8_linear/fields.hpp"
#include "operations/fp8_linear/pass.hpp"
#include "operations/own_workspace.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr int kMaxHistory = 4096;
// With these the code of the largest value is still a number, the least: 448 / 2^18 is above half
// of E4M3's, 2^-9, and 57344 / 2^32 above half of E5M2's, 2^-16. A margin more, and all codes are
// 0.
constexpr int kE4m3MaxMargin = 18;
constexpr int kE5m2MaxMargin = 32;

constexpr const char* kInput = "[..., in_features]";
constexpr const char* kOutput = "[..., out_features]";
constexpr const char* kWeight = "[out_features, in_features]";
constexpr const char* kBias = "[out_features]";
constexpr const char* kState = "[3, fp8_state_columns(recipe)]";
constexpr const char* kScales = "[2]";

// Checks what every matrix has to be, and gives it as one.
Tensor matrix(const Named& first, const Named& named, Data data) {
    check_same_device(first, named);
    const Tensor result = as_matrix(named);
    if (std::max(result.shape[0], result.shape[1]) > kMostOfFp8Gemm) {
        refuse("{} has the shape {}, which is {} rows of {}, and there may be {} of both: split it",
               named.name, shape_text(named.tensor), result.shape[0], result.shape[1],
               kMostOfFp8Gemm);
    }
    check_pointer(named, data);
    return result;
}

void check_written_matrix(const Named& first, const Named& named, Data data) {
    check_no_overlap({named.name, matrix(first, named, data), named.dims});
}

// The shape of `like`, but for the last size.
void check_rows(const Named& named, const Named& like, std::int64_t last) {
    Tensor wanted = like.tensor;
    wanted.shape[static_cast<std::size_t>(wanted.ndim - 1)] = last;
    if (named.tensor.ndim == wanted.ndim && named.tensor.shape == wanted.shape) return;
    refuse("{} has the shape {}; it must be {}, which is {}", named.name, shape_text(named.tensor),
           shape_text(wanted), named.dims);
}

void check_codes_format(const Named& named, DType format) {
    if (named.tensor.dtype == format) return;
    refuse("{} has the dtype {}; the recipe's formats make it {}", named.name,
           name_of(named.tensor.dtype), name_of(format));
}

void check_scales(const Named& first, const Tensor& scales, Data data) {
    const Named named{"saved.scales", scales, kScales};
    check_dtype(named, DType::fp32);
    check_same_device(first, named);
    check_sizes(named, 1);
    check_shape(named, {2});
    check_strides(named);
    check_pointer(named, data);
}

void check_state_of(const Named& first, const Tensor& state, const Fp8Recipe& recipe, Data data) {
    const Named named{"state", state, kState};
    check_state(state, data);
    check_same_device(first, named);
    check_shape(named, {3, fp8_state_columns(recipe)});
}

}  // namespace

DType forward_format(const Fp8Recipe& recipe) noexcept {
    return recipe.formats == Fp8Formats::e5m2 ? DType::fp8_e5m2 : DType::fp8_e4m3;
}

DType backward_format(const Fp8Recipe& recipe) noexcept {
    return recipe.formats == Fp8Formats::e4m3 ? DType::fp8_e4m3 : DType::fp8_e5m2;
}

void check(const Fp8Recipe& recipe) {
    check_enum<Fp8Formats>(
        "recipe.formats", recipe.formats,
        {{Fp8Formats::e4m3, "e4m3"}, {Fp8Formats::e5m2, "e5m2"}, {Fp8Formats::hybrid, "hybrid"}});
    check_enum<Fp8Scaling>("recipe.scaling", recipe.scaling,
                           {{Fp8Scaling::delayed, "delayed"}, {Fp8Scaling::dynamic, "dynamic"}});
    check_enum<Fp8Amax>("recipe.amax", recipe.amax,
                        {{Fp8Amax::window, "window"}, {Fp8Amax::latest, "latest"}});
    if (recipe.scaling == Fp8Scaling::dynamic) return;
    if (recipe.history < 1 || recipe.history > kMaxHistory) {
        refuse("recipe.history is {}; it must be from 1 to {}", recipe.history, kMaxHistory);
    }
    const int most = recipe.formats == Fp8Formats::e5m2 ? kE5m2MaxMargin : kE4m3MaxMargin;
    if (recipe.margin < 0 || recipe.margin > most) {
        refuse(
            "recipe.margin is {}; with these formats it must be from 0 to {}: each halves the "
            "multiplier, and with more the codes of all values would be 0",
            recipe.margin, most);
    }
}

void check_state(const Tensor& state, Data data) {
    const Named named{"state", state, kState};
    check_dtype(named, DType::fp32);
    check_sizes(named, 2);
    if (state.shape[0] != 3 || state.shape[1] < kFp8StateHistory) {
        refuse("state has the shape [{}, {}]; it must be {}", state.shape[0], state.shape[1],
               kState);
    }
    check_strides(named);
    if (state.strides[0] != state.shape[1]) {
        refuse("the rows of state are {} elements apart; they must be {}, without a gap",
               state.strides[0], state.shape[1]);
    }
    check_pointer(named, data);
}

namespace {

void check_bias(const Named& x, const Tensor& tensor, std::int64_t out_features, Data data) {
    const Named bias{"bias", tensor, kBias};
    check_bias_dtype(bias);
    check_same_device(x, bias);
    check_sizes(bias, 1);
    check_shape(bias, {out_features});
    check_strides(bias);
    check_pointer(bias, data);
}

void check_weight_scale(const Named& x, const Tensor& scale, std::int64_t out_features,
                        std::int64_t in_features, Data data) {
    const Named named{"weight_scale", scale, "[1], [out_features] or one a block of 128 by 128"};
    check_dtype(named, DType::fp32);
    check_same_device(x, named);
    if (scale.ndim < 0 || scale.ndim > 2) {
        refuse("weight_scale has {} dimensions; it must have at most two: {}", scale.ndim,
               named.dims);
    }
    check_sizes(named, scale.ndim);
    const std::int64_t down = ceil_div(out_features, std::int64_t{kFp8ScaleCols});
    const std::int64_t across = ceil_div(in_features, std::int64_t{kFp8ScaleCols});
    const bool one = scale.ndim == 0 || (scale.ndim == 1 && scale.shape[0] == 1);
    const bool channels = scale.ndim >= 1 && scale.shape[0] == out_features &&
                          (scale.ndim == 1 || scale.shape[1] == 1);
    const bool blocks = scale.ndim == 2 && scale.shape[0] == down && scale.shape[1] == across;
    if (!one && !channels && !blocks) {
        refuse(
            "weight_scale has the shape {}; for a weight of [{}, {}] it must be [1], [{}], [{}, 1] "
            "or, one a block of 128 by 128, [{}, {}]",
            shape_text(scale), out_features, in_features, out_features, out_features, down, across);
    }
    check_reach(named);
    check_pointer(named, data);
}

}  // namespace

bool has_blocks(const Fp8LinearInferenceArgs& args) noexcept {
    const Tensor& scale = args.weight_scale;
    return scale.ndim == 2 && (scale.shape[1] != 1 || scale.shape[0] != args.weight.shape[0]);
}

policy::Fp8LinearProblem check(const Fp8LinearInferenceArgs& args, Data data) {
    const Named x{"x", args.x, kInput};
    check_floating(x);
    const std::int64_t in_features = matrix(x, x, data).shape[1];
    const Named weight{"weight", args.weight, kWeight};
    check_fp8(weight);
    check_sizes(weight, 2);
    const std::int64_t out_features = matrix(x, weight, data).shape[0];
    check_shape(weight, {out_features, in_features});
    check_weight_scale(x, args.weight_scale, out_features, in_features, data);
    if (args.x_scale) {
        const Named x_scale{"x_scale", *args.x_scale, "[1]"};
        check_number(x_scale);
        check_same_device(x, x_scale);
        check_pointer(x_scale, data);
    }
    if (args.bias) check_bias(x, *args.bias, out_features, data);
    const Named y{"y", args.y, kOutput};
    check_floating(y);
    check_written_matrix(x, y, data);
    check_rows(y, x, out_features);
    if (data != Data::absent) {
        check_given(args.workspace);
        check_memory(args);
    }
    return problem_of(pass_of(args, nullptr));
}

policy::Fp8LinearProblem check(const Fp8LinearArgs& args, Data data) {
    check(args.recipe);
    const Named x{"x", args.x, kInput};
    check_floating(x);
    const std::int64_t in_features = matrix(x, x, data).shape[1];

    const Named weight{"weight", args.weight, kWeight};
    check_floating(weight);
    check_sizes(weight, 2);
    const std::int64_t out_features = matrix(x, weight, data).shape[0];
    check_shape(weight, {out_features, in_features});

    const Named y{"y", args.y, kOutput};
    check_floating(y);
    check_written_matrix(x, y, data);
    check_rows(y, x, out_features);
    if (args.bias) check_bias(x, *args.bias, out_features, data);
    check_state_of(x, args.state, args.recipe, data);

    if (args.saved) {
        const DType format = forward_format(args.recipe);
        const Named x_codes{"saved.x_codes", args.saved->x_codes, kInput};
        const Named weight_codes{"saved.weight_codes", args.saved->weight_codes, kWeight};
        check_codes_format(x_codes, format);
        check_codes_format(weight_codes, format);
        check_written_matrix(x, x_codes, data);
        check_rows(x_codes, x, in_features);
        check_written_matrix(x, weight_codes, data);
        check_shape(weight_codes, {out_features, in_features});
        check_scales(x, args.saved->scales, data);
    }
    if (data != Data::absent) {
        check_given(args.workspace);
        check_memory(args);
    }
    return problem_of(pass_of(args, nullptr));
}

policy::Fp8LinearProblem check(const Fp8LinearBackwardArgs& args, Data data) {
    check(args.recipe);
    if (!args.grad_x && !args.grad_weight && !args.grad_bias) {
        refuse("neither grad_x nor grad_weight nor grad_bias was given: give what is wanted");
    }
    const Named grad_y{"grad_y", args.grad_y, kOutput};
    check_floating(grad_y);
    const std::int64_t out_features = matrix(grad_y, grad_y, data).shape[1];

    const DType format = forward_format(args.recipe);
    const Named x_codes{"saved.x_codes", args.saved.x_codes, kInput};
    const Named weight_codes{"saved.weight_codes", args.saved.weight_codes, kWeight};
    check_codes_format(x_codes, format);
    check_codes_format(weight_codes, format);
    const std::int64_t in_features = matrix(grad_y, x_codes, data).shape[1];
    check_rows(x_codes, grad_y, in_features);
    check_sizes(weight_codes, 2);
    static_cast<void>(matrix(grad_y, weight_codes, data));
    check_shape(weight_codes, {out_features, in_features});
    check_scales(grad_y, args.saved.scales, data);

    const auto check_gradient = [&](const Named& named) {
        check_floating(named);
        check_written_matrix(grad_y, named, data);
    };
    if (args.grad_x) {
        const Named grad_x{"grad_x", *args.grad_x, kInput};
        check_gradient(grad_x);
        check_rows(grad_x, grad_y, in_features);
    }
    if (args.grad_weight) {
        const Named grad_weight{"grad_weight", *args.grad_weight, kWeight};
        check_gradient(grad_weight);
        check_shape(grad_weight, {out_features, in_features});
    }
    if (args.grad_bias) {
        const Named grad_bias{"grad_bias", *args.grad_bias, kBias};
        check_gradient(grad_bias);
        check_sizes(grad_bias, 1);
        check_shape(grad_bias, {out_features});
    }
    check_state_of(grad_y, args.state, args.recipe, data);
    if (data != Data::absent) {
        check_given(args.workspace);
        check_memory(args);
    }
    return problem_of(pass_of(args, nullptr));
}

}  // namespace jitney::checks
