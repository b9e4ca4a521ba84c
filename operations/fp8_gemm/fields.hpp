// The arguments of a product of FP8 matrices.
#pragma once

#include "jitney/fp8_gemm.hpp"
#include "jitney/jitney.h"
#include "operations/common_fields.hpp"

namespace jitney {

template <>
struct CallFields<Fp8GemmArgs> {
    using Args = Fp8GemmArgs;
    using C = jitney_fp8_gemm_args;
    static constexpr auto c_first = &C::workspace_bytes;
    static constexpr const char* does = "op(a) op(b) + bias, of FP8 matrices and their scales";
    static constexpr std::tuple all{
        fields::read("a", &Args::a)
            .told("the left matrix", {"trans_a: [k, m] | [m, k]", fields::kFp8}, &C::a),
        fields::read("b", &Args::b)
            .told("the right matrix, in a's format or the other",
                  {"trans_b: [n, k] | [k, n] | trans_b: [groups, n, k] | [groups, k, n]",
                   fields::kFp8},
                  &C::b),
        fields::written("out", &Args::out)
            .told("the product",
                  {.shape = "[m, n]", .dtypes = "bf16|fp16|fp32|e4m3|e5m2", .option = "out"},
                  &C::out),
        fields::read("dequant_scale", &Args::dequant_scale)
            .as_numbers()
            .told("what turns products of codes into products of numbers", {"[1]", "fp32"},
                  &C::dequant_scale),
        fields::read("scale_a", &Args::scale_a)
            .as_numbers()
            .told("in the place of dequant_scale, with scale_b: what turns codes of a into "
                  "numbers; one number, one a row, or one a row and 128 of k",
                  {"[m] | [1] | [m, k / 128]", "fp32"}, &C::scale_a),
        fields::read("scale_b", &Args::scale_b)
            .as_numbers()
            .told("the same of b: one number, one a column, or one a block of 128 columns by 128 "
                  "of k",
                  {"[n] | [1] | [n / 128, k / 128] | [groups, n / 128, k / 128]", "fp32"},
                  &C::scale_b),
        fields::read("bias", &Args::bias)
            .told("added to each row", {"[n] | [groups, n]", "bf16|fp32"}, &C::bias),
        fields::read("out_multiplier", &Args::out_multiplier)
            .as_numbers()
            .told("with an output in FP8, and only there: its codes are those of the result times "
                  "this",
                  {"[1]", "fp32"}, &C::out_multiplier),
        fields::written("amax", &Args::amax)
            .as_numbers()
            .told("with an output in FP8: the largest |result|",
                  {.shape = "[1]", .dtypes = "fp32", .when = "out_multiplier"}, &C::amax),
        fields::read("group_indptr", &Args::group_indptr)
            .told("the first row of a of each group, and the end of the last: each group has a b, "
                  "and may have a scale_b and a bias",
                  {"[groups + 1]", "int32"}, &C::group_indptr),
        fields::plain("trans_a", &Args::trans_a).told("a is [k, m], not [m, k]", &C::trans_a),
        fields::plain("trans_b", &Args::trans_b).told("b is [n, k], not [k, n]", &C::trans_b),
        fields::kFastAccumField<Args, C>,
        fields::kWorkspaceField<Args, C>,
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "bias",
                      .says = Says::word,
                      .of = "bias",
                      .meaning = "Format of the bias (none)",
                      .gives = "bias"},
        ProblemOption{.name = "amax",
                      .says = Says::flag,
                      .meaning = "With an output in FP8: its largest magnitude too",
                      .gives = "amax"},
        ProblemOption{.name = "scales",
                      .says = Says::choice,
                      .of = "one|sides|blocks",
                      .meaning = "One number, one a row of a and a column of b, or blocks of 128 "
                                 "along k (one)",
                      .without = "dequant_scale|scale_a|scale_b"},
        fields::where("scales=one", "dequant_scale"),
        fields::where("scales=sides", "scale_a|scale_b"),
        fields::where("scales=blocks", "scale_a [m, k / 128]|scale_b [n / 128, k / 128]"),
        fields::where("out=e4m3", "out_multiplier"),
        fields::where("out=e5m2", "out_multiplier"),
    };
};

static_assert(lists_all_members<Fp8GemmArgs>());
static_assert(covers_c_struct<CallFields<Fp8GemmArgs>, jitney_fp8_gemm_args>());

}  // namespace jitney
