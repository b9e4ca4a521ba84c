// The arguments of rms_norm.
#pragma once

#include "jitney/jitney.h"
#include "jitney/rms_norm.hpp"
#include "operations/common_fields.hpp"

namespace jitney {

template <>
struct CallFields<RmsNormArgs> {
    using Args = RmsNormArgs;
    using C = jitney_rms_norm_args;
    static constexpr auto c_first = &C::reserved;
    static constexpr const char* does =
        "Normalises rows, of x or of x + residual, by the root of their mean square (RMSNorm), or "
        "with their mean taken off first (LayerNorm)";
    static constexpr std::tuple all{
        fields::source("x", &Args::x)
            .told("rows to normalise", {"[rows..., d]", fields::kFloating}, &C::x),
        fields::source("residual", &Args::residual)
            .told("added to x first", {.shape = "x", .dtypes = fields::kFloating}, &C::residual),
        fields::result("sum", &Args::sum, "residual", &Args::residual)
            .told("x + residual: residual itself, in place, or memory apart from it",
                  {.shape = "x", .like = "x", .when = "residual"}, &C::sum),
        fields::read("weight", &Args::weight)
            .told("what the rows are multiplied by; 1 where it is left out",
                  {"[d]", fields::kFloating}, &C::weight),
        fields::read("bias", &Args::bias)
            .told("added at the end; of the weight's dtype", {"[d]", fields::kFloating}, &C::bias),
        fields::result("out", &Args::out, "x", &Args::x)
            .told("the result, in x's dtype, and then it may be x itself; or codes of E4M3",
                  {.shape = "x", .dtypes = "bf16|fp16|fp32|e4m3", .like = "x"}, &C::out),
        fields::kRowMultiplierField<Args, C>,
        fields::kRowScaleField<Args, C>,
        fields::plain("eps", &Args::eps)
            .told("added to the mean square; 1e-6 where it is left out", &C::eps),
        fields::plain("one_plus_weight", &Args::one_plus_weight)
            .told("rows are multiplied by 1 + weight", &C::one_plus_weight),
        fields::plain("subtract_mean", &Args::subtract_mean)
            .told("LayerNorm: each row's mean is taken off first", &C::subtract_mean),
    };
};

static_assert(lists_all_members<RmsNormArgs>());
static_assert(covers_c_struct<CallFields<RmsNormArgs>, jitney_rms_norm_args>());

}  // namespace jitney
