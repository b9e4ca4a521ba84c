// The arguments of a cast to FP8.
#pragma once

#include "jitney/fp8_quantize.hpp"
#include "operations/call_fields.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {

template <>
struct CallFields<Fp8QuantizeArgs> {
    using Args = Fp8QuantizeArgs;
    static constexpr bool makes_multiplier(const Args& args) noexcept { return args.dynamic; }
    static constexpr std::tuple all{
        fields::read("x", &Args::x),
        fields::written("out", &Args::out),
        fields::written("out_transposed", &Args::out_transposed),
        fields::written("multiplier", &Args::multiplier).only_where(&makes_multiplier).as_numbers(),
        fields::written("scale", &Args::scale).as_numbers(),
        fields::written("amax", &Args::amax).as_numbers(),
        fields::plain("dynamic", &Args::dynamic),
        fields::plain("workspace", &Args::workspace)
            .may_differ<Differs::in_calls>(&look::at_workspace<Args>),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [x, out, out_transposed, multiplier, scale, amax, dynamic, workspace] =
        kNoCall<Fp8QuantizeArgs>;
    return are_listed<Fp8QuantizeArgs>(x, out, out_transposed, multiplier, scale, amax, dynamic,
                                       workspace);
}());

}  // namespace jitney
