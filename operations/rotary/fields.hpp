// The arguments of a rotary call.
#pragma once

#include "jitney/jitney.h"
#include "jitney/rotary.hpp"
#include "operations/common_fields.hpp"

namespace jitney {

namespace fields {
inline constexpr FieldText kRotaryTable{"[table_len, rotary_dim / 2]", "fp32"};
inline constexpr ProblemOption kRotaryDimOption{
    .name = "rotary-dim",
    .says = ProblemOption::Says::size,
    .of = "rotary_dim",
    .meaning = "Leading elements of each head that are rotated (all)",
    .least = 2};
inline constexpr ProblemSize kRotaryDim{.name = "rotary_dim",
                                        .otherwise = "head_dim",
                                        .called = "the rotary dimension",
                                        .even = true,
                                        .at_most = "head_dim"};
}  // namespace fields

template <>
struct CallFields<RotaryArgs> {
    using Args = RotaryArgs;
    using C = jitney_rotary_args;
    static constexpr auto c_first = &C::reserved;
    static constexpr const char* does = "Rotary position embedding of q and, in the same launch, k";
    static constexpr std::tuple all{
        fields::source("q", &Args::q)
            .told("what is rotated",
                  {.shape = "[batch, length, heads, head_dim]",
                   .dtypes = fields::kFloating,
                   .file = "x to out"},
                  &C::q),
        fields::source("k", &Args::k)
            .told("rotated too", {"[batch, length, kv_heads, head_dim]", fields::kFloating}, &C::k),
        fields::result("q_out", &Args::q_out, "q", &Args::q)
            .told("q rotated: q itself, in place, or memory apart from it",
                  {.shape = "q", .like = "q"}, &C::q_out),
        fields::result("k_out", &Args::k_out, "k", &Args::k)
            .told("k rotated, likewise", {.shape = "k", .like = "k", .when = "k"}, &C::k_out),
        fields::read("cos", &Args::cos)
            .told("cosines; twice the width is how many leading elements of a head are rotated",
                  fields::kRotaryTable, &C::cos),
        fields::read("sin", &Args::sin).told("sines", fields::kRotaryTable, &C::sin),
        fields::read("positions", &Args::positions)
            .told("the row of cos and sin for each token; its index along the length where it is "
                  "left out",
                  {"[batch, length] | [length]", "int32|int64"}, &C::positions),
        fields::kStyleField<Args, C>,
    };
    static constexpr std::array problem{fields::kRotaryDimOption};
    static constexpr std::array sizes{fields::kRotaryDim,
                                      ProblemSize{.name = "table_len", .otherwise = "length"}};
};

static_assert(lists_all_members<RotaryArgs>());
static_assert(covers_c_struct<CallFields<RotaryArgs>, jitney_rotary_args>());

}  // namespace jitney
