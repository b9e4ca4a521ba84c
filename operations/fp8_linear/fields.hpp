// The arguments of a linear layer on FP8, forward and backward.
#pragma once

#include "jitney/fp8_linear.hpp"
#include "jitney/jitney.h"
#include "operations/common_fields.hpp"

namespace jitney {

template <>
struct CallFields<Fp8Recipe> {
    using Args = Fp8Recipe;
    using C = jitney_fp8_recipe;
    static constexpr std::tuple all{
        fields::plain("recipe.formats", &Args::formats)
            .told("formats of x and weight, and of grad_y; hybrid is e4m3, and e5m2 of grad_y",
                  {.words = "e4m3|e5m2|hybrid", .option = "fp8-format"}, &C::formats),
        fields::plain("recipe.scaling", &Args::scaling)
            .told("by the amax of earlier steps, or by the tensor's own",
                  {.words = "delayed|dynamic", .option = "recipe"}, &C::scaling),
        fields::plain("recipe.history", &Args::history)
            .told("steps that delayed scaling remembers, 1 to 4096", &C::history),
        fields::plain("recipe.amax", &Args::amax)
            .told("which amax delayed scaling goes by: the window's largest, or the latest",
                  {.words = "window|latest"}, &C::amax),
        fields::plain("recipe.margin", &Args::margin)
            .told("halvings of the multiplier, as headroom", &C::margin),
    };
};

// The forward call writes them, the backward call reads them.
template <>
struct CallFields<Fp8LinearSaved> {
    using Args = Fp8LinearSaved;
    static constexpr std::tuple all{
        fields::plain("saved.x_codes", &Args::x_codes)
            .told("the codes of x",
                  {.shape = "[rows..., in_features]", .dtypes = fields::kFp8, .like = "formats"}),
        fields::plain("saved.weight_codes", &Args::weight_codes)
            .told("the codes of weight", {.shape = "[out_features, in_features]",
                                          .dtypes = fields::kFp8,
                                          .like = "formats"}),
        fields::plain("saved.scales", &Args::scales)
            .as_numbers()
            .told("the scales of both", {"[2]", "fp32"}),
    };
};

namespace fields {
inline constexpr FieldText kFp8State{"scaling=dynamic: [3, 4] | [3, 4 + history]", "fp32"};
inline constexpr const char* kFp8StateMeans = "the layer's state; zeros are one without a history";
}  // namespace fields

template <>
struct CallFields<Fp8LinearArgs> {
    using Args = Fp8LinearArgs;
    using C = jitney_fp8_linear_args;
    static constexpr auto c_first = &C::workspace_bytes;
    static constexpr const char* does = "A linear layer on FP8: y = x weight^T + bias";
    static constexpr std::tuple all{
        fields::read("x", &Args::x)
            .told("the input", {"[rows..., in_features]", fields::kFloating}, &C::x),
        fields::read("weight", &Args::weight)
            .told("the weight", {"[out_features, in_features]", fields::kFloating}, &C::weight),
        fields::read("bias", &Args::bias)
            .told("added to each row", {"[out_features]", "bf16|fp32"}, &C::bias),
        fields::written("y", &Args::y)
            .told("the output",
                  {.shape = "[rows..., out_features]", .dtypes = fields::kFloating, .like = "x"},
                  &C::y),
        fields::updated("state", &Args::state)
            .as_numbers()
            .told(fields::kFp8StateMeans, fields::kFp8State, &C::state),
        fields::written("saved", &Args::saved)
            .told("what the backward call needs", {.option = "save"}, &C::x_codes, &C::weight_codes,
                  &C::scales),
        fields::plain("recipe", &Args::recipe).told("how the tensors are scaled", &C::recipe),
        fields::kFastAccumField<Args, C>,
        fields::kWorkspaceField<Args, C>,
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "bias",
                      .says = Says::word,
                      .of = "bias|grad_bias",
                      .meaning = "Format of the bias (none)",
                      .gives = "bias|grad_bias"},
        ProblemOption{.name = "backward",
                      .says = Says::operation,
                      .of = "fp8_linear_backward",
                      .meaning = "The backward call, which makes all gradients",
                      .without = "saved",
                      .otherwise = "leaves out the forward call, which --save is of: give one of "
                                   "them"},
    };
};

template <>
struct CallFields<Fp8LinearBackwardArgs> {
    using Args = Fp8LinearBackwardArgs;
    using C = jitney_fp8_linear_backward_args;
    static constexpr auto c_first = &C::workspace_bytes;
    static constexpr const char* does =
        "The gradients of a linear layer on FP8, from what its forward call saved";
    static constexpr std::tuple all{
        fields::read("grad_y", &Args::grad_y)
            .told("the gradient of y", {"[rows..., out_features]", fields::kFloating}, &C::grad_y),
        fields::read("saved", &Args::saved)
            .told("what the forward call left", &C::x_codes, &C::weight_codes, &C::scales),
        fields::written("grad_x", &Args::grad_x)
            .told("the gradient of x",
                  {.shape = "[rows..., in_features]",
                   .dtypes = fields::kFloating,
                   .like = "grad_y",
                   .when = "always"},
                  &C::grad_x),
        fields::written("grad_weight", &Args::grad_weight)
            .told("the gradient of weight",
                  {.shape = "[out_features, in_features]",
                   .dtypes = fields::kFloating,
                   .like = "grad_y",
                   .when = "always"},
                  &C::grad_weight),
        fields::written("grad_bias", &Args::grad_bias)
            .told("the gradient of the bias: the sum of grad_y, before it is cast",
                  {.shape = "[out_features]",
                   .dtypes = fields::kFloating,
                   .like = "grad_y",
                   .when = "always"},
                  &C::grad_bias),
        fields::updated("state", &Args::state)
            .as_numbers()
            .told(fields::kFp8StateMeans, fields::kFp8State, &C::state),
        fields::plain("recipe", &Args::recipe).told("how the tensors are scaled", &C::recipe),
        fields::kFastAccumField<Args, C>,
        fields::kWorkspaceField<Args, C>,
    };
};

template <>
struct CallFields<Fp8LinearInferenceArgs> {
    using Args = Fp8LinearInferenceArgs;
    using C = jitney_fp8_linear_inference_args;
    static constexpr auto c_first = &C::workspace_bytes;
    static constexpr const char* does =
        "A linear layer whose weight is in FP8 already: y = x weight^T + bias";
    static constexpr std::tuple all{
        fields::read("x", &Args::x)
            .told("the input, cast to E4M3", {"[rows..., in_features]", fields::kFloating}, &C::x),
        fields::read("weight", &Args::weight)
            .told("the codes of the weight", {"[out_features, in_features]", fields::kFp8},
                  &C::weight),
        fields::read("weight_scale", &Args::weight_scale)
            .as_numbers()
            .told("what the codes are multiplied by: one number, one an output channel, or one a "
                  "block of 128 by 128",
                  {"[out_features] | [1] | [out_features / 128, in_features / 128]", "fp32"},
                  &C::weight_scale),
        fields::read("x_scale", &Args::x_scale)
            .as_numbers()
            .told("the scale of x; left out, its own amax makes one a row, or, where weight has "
                  "blocks, one for each 128 columns of a row",
                  {"[1]", "fp32"}, &C::x_scale),
        fields::read("bias", &Args::bias)
            .told("added to each row", {"[out_features]", "bf16|fp32"}, &C::bias),
        fields::written("y", &Args::y)
            .told("the output",
                  {.shape = "[rows..., out_features]", .dtypes = fields::kFloating, .like = "x"},
                  &C::y),
        fields::kFastAccumField<Args, C>,
        fields::kWorkspaceField<Args, C>,
    };
};

static_assert(lists_all_members<Fp8LinearInferenceArgs>());
static_assert(
    covers_c_struct<CallFields<Fp8LinearInferenceArgs>, jitney_fp8_linear_inference_args>());
static_assert(lists_all_members<Fp8Recipe>() && lists_all_members<Fp8LinearSaved>());
static_assert(lists_all_members<Fp8LinearArgs>() && lists_all_members<Fp8LinearBackwardArgs>());
static_assert(covers_c_struct<CallFields<Fp8Recipe>, jitney_fp8_recipe>());
static_assert(covers_c_struct<CallFields<Fp8LinearArgs>, jitney_fp8_linear_args>());
static_assert(
    covers_c_struct<CallFields<Fp8LinearBackwardArgs>, jitney_fp8_linear_backward_args>());

}  // namespace jitney
