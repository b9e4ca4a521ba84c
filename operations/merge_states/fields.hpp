// The arguments of merge_states.
#pragma once

#include "jitney/jitney.h"
#include "jitney/merge_states.hpp"
#include "operations/call_fields.hpp"

namespace jitney {

template <>
struct CallFields<PartialState> {
    using Args = PartialState;
    using C = jitney_partial_state;
    static constexpr std::tuple all{
        fields::read("out", &Args::out)
            .told("results of attention over some of the keys, behind each other",
                  {"[parts, batch, q_len, heads, head_dim] | [parts, total_q, heads, head_dim]",
                   fields::kFloating},
                  &C::out),
        fields::read("lse", &Args::lse)
            .told("their LSE, natural log",
                  {"[parts, batch, heads, q_len] | [parts, total_q, heads]", "fp32"}, &C::lse),
    };
};

template <>
struct CallFields<MergeStatesArgs> {
    using Args = MergeStatesArgs;
    using C = jitney_merge_states_args;
    static constexpr auto c_first = &C::lse;
    static constexpr const char* does =
        "Merges partial results of attention over different keys into the result over all of them";
    static constexpr const char* result_shape =
        "[batch, q_len, heads, head_dim] | [total_q, heads, head_dim]";
    static constexpr std::tuple all{
        fields::plain("parts", &Args::parts)
            .told("one to 16 pairs of tensors; in C and C++ each may leave out the first size",
                  &C::parts, &C::part_count),
        fields::written("out", &Args::out)
            .told("the merged result: in the memory of one part, with its lse, or apart",
                  {.shape = result_shape, .like = "parts.out"}, &C::out),
        fields::written("lse", &Args::lse)
            .told("its LSE", {"[batch, heads, q_len] | [total_q, heads]", "fp32"}, &C::lse),
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "out",
                      .says = Says::shape,
                      .of = result_shape,
                      .meaning = "Shape of the result: batch,q_len,heads,head_dim, or ragged "
                                 "total_q,heads,head_dim",
                      .gives = "lse"},
        ProblemOption{.name = "parts",
                      .says = Says::size,
                      .of = "parts",
                      .meaning = "How many partial results are merged (2)",
                      .least = 2},
    };
    static constexpr std::array sizes{ProblemSize{.name = "parts", .otherwise = "2"}};
};

static_assert(lists_all_members<MergeStatesArgs>() && lists_all_members<PartialState>());
static_assert(covers_c_struct<CallFields<MergeStatesArgs>, jitney_merge_states_args>());
static_assert(covers_c_struct<CallFields<PartialState>, jitney_partial_state>());

}  // namespace jitney
