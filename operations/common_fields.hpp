// Fields that several operations have, each once: of the arguments Args, and of C, their struct in
// C.
#pragma once

#include "operations/call_fields.hpp"
#include "operations/own_workspace.hpp"

namespace jitney::fields {

template <class Args, class C>
inline constexpr auto kWorkspaceField =
    plain("workspace", &Args::workspace)
        .template may_differ<Differs::in_calls>(&look::at_workspace<Args>)
        .told(kWorkspaceMeans, &C::workspace, &C::workspace_bytes);

template <class Args, class C>
inline constexpr auto kFastAccumField =
    plain("fast_accum", &Args::fast_accum).told(kFastAccumMeans, &C::fast_accum);

template <class Args, class C>
inline constexpr auto kStyleField =
    plain("style", &Args::style)
        .told("which elements are turned together: 2i and 2i + 1, or i and i + rotary_dim / 2",
              {.words = "interleaved|half_split"}, &C::style);

// What makes codes of the rows of a result: one of the two.
template <class Args, class C>
inline constexpr auto kRowMultiplierField = read("multiplier", &Args::multiplier)
                                                .as_numbers()
                                                .told("what the codes are made with",
                                                      {"[1]", "fp32"}, &C::multiplier);
template <class Args, class C>
inline constexpr auto kRowScaleField =
    written("scale", &Args::scale)
        .as_numbers()
        .told("instead of multiplier: each row's own scale, which its largest value makes",
              {"[rows]", "fp32"}, &C::scale);

}  // namespace jitney::fields
