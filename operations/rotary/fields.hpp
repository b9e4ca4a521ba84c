// The arguments of a rotary call.
#pragma once

#include "jitney/rotary.hpp"
#include "operations/call_fields.hpp"

namespace jitney {

template <>
struct CallFields<RotaryArgs> {
    using Args = RotaryArgs;
    static constexpr std::tuple all{
        fields::source("q", &Args::q),
        fields::source("k", &Args::k),
        fields::result("q_out", &Args::q_out, "q", &Args::q),
        fields::result("k_out", &Args::k_out, "k", &Args::k),
        fields::read("cos", &Args::cos),
        fields::read("sin", &Args::sin),
        fields::read("positions", &Args::positions),
        fields::plain("style", &Args::style),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [q, k, q_out, k_out, cos, sin, positions, style] = kNoCall<RotaryArgs>;
    return are_listed<RotaryArgs>(q, k, q_out, k_out, cos, sin, positions, style);
}());

}  // namespace jitney
