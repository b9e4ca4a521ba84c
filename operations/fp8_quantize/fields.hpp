// The arguments of a cast to FP8.
#pragma once

#include "jitney/fp8_quantize.hpp"
#include "jitney/jitney.h"
#include "operations/common_fields.hpp"

namespace jitney {

template <>
struct CallFields<Fp8QuantizeArgs> {
    using Args = Fp8QuantizeArgs;
    using C = jitney_fp8_quantize_args;
    static constexpr auto c_first = &C::workspace_bytes;
    static constexpr const char* does =
        "Casts x * multiplier to an 8-bit floating format, saturating";
    static constexpr bool makes_multiplier(const Args& args) noexcept { return args.dynamic; }
    static constexpr std::tuple all{
        fields::read("x", &Args::x)
            .told("what is cast", {"[rows..., cols]", fields::kFloating}, &C::x),
        fields::written("out", &Args::out)
            .told("the codes", {.shape = "x", .dtypes = fields::kFp8, .when = "always"}, &C::out),
        fields::written("out_transposed", &Args::out_transposed)
            .told("the codes of the matrix turned",
                  {.shape = "[cols, rows]", .like = "out", .option = "transposed"},
                  &C::out_transposed),
        fields::written("multiplier", &Args::multiplier)
            .only_where(&makes_multiplier)
            .as_numbers()
            .told("what x is multiplied by, 1 where it is left out; written where scaling is "
                  "dynamic",
                  {.shape = "[1]", .dtypes = "fp32", .when = "dynamic and granularity=tensor"},
                  &C::multiplier),
        fields::written("scale", &Args::scale)
            .as_numbers()
            .told("1 / multiplier: one number, or one for each part of x that granularity names",
                  {.shape = "granularity=row: [rows] | "
                            "granularity=group: [rows, cols / 128] | "
                            "granularity=block: [rows / 128, cols / 128] | [1]",
                   .dtypes = "fp32",
                   .when = "dynamic"},
                  &C::scale),
        fields::written("amax", &Args::amax)
            .as_numbers()
            .told("the largest |x|, before scaling; NaN where x holds one",
                  {.shape = "[1]", .dtypes = "fp32", .when = "granularity=tensor"}, &C::amax),
        fields::plain("dynamic", &Args::dynamic)
            .told("the multiplier is made of x's own amax, in a second pass", &C::dynamic),
        fields::plain("granularity", &Args::granularity)
            .told("what shares a scale: all of x, a row, 128 columns of a row, or 128 rows of 128 "
                  "columns; all but the first need dynamic, and take one pass",
                  {.words = "tensor|row|group|block"}, &C::granularity),
        fields::plain("power_of_two", &Args::power_of_two)
            .told("dynamic multipliers are rounded down to powers of two", &C::power_of_two),
        fields::kWorkspaceField<Args, C>,
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "transposed",
                      .says = Says::flag,
                      .meaning = "The codes transposed alone",
                      .gives = "out_transposed|-out",
                      .without = "both",
                      .otherwise = "asks for one form of the codes, and --both for two: leave one "
                                   "of them out"},
        ProblemOption{.name = "both",
                      .says = Says::flag,
                      .meaning = "The codes both ways",
                      .gives = "out_transposed"},
        ProblemOption{
            .name = "amax", .says = Says::flag, .meaning = "The largest |x|, too", .gives = "amax"},
    };
};

static_assert(lists_all_members<Fp8QuantizeArgs>());
static_assert(covers_c_struct<CallFields<Fp8QuantizeArgs>, jitney_fp8_quantize_args>());

}  // namespace jitney
