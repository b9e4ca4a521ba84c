// The arguments of merge_states.
#pragma once

#include "jitney/merge_states.hpp"
#include "operations/call_fields.hpp"

namespace jitney {

template <>
struct CallFields<PartialState> {
    using Args = PartialState;
    static constexpr std::tuple all{
        fields::read("out", &Args::out),
        fields::read("lse", &Args::lse),
    };
};

template <>
struct CallFields<MergeStatesArgs> {
    using Args = MergeStatesArgs;
    static constexpr std::tuple all{
        fields::plain("parts", &Args::parts),
        fields::written("out", &Args::out),
        fields::written("lse", &Args::lse),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [parts, out, lse] = kNoCall<MergeStatesArgs>;
    return are_listed<MergeStatesArgs>(parts, out, lse);
}());
static_assert([] {
    const auto& [out, lse] = kNoCall<PartialState>;
    return are_listed<PartialState>(out, lse);
}());

}  // namespace jitney
