// The arguments of a product of FP8 matrices.
#pragma once

#include "jitney/fp8_gemm.hpp"
#include "operations/call_fields.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {

template <>
struct CallFields<Fp8GemmArgs> {
    using Args = Fp8GemmArgs;
    static constexpr std::tuple all{
        fields::read("a", &Args::a),
        fields::read("b", &Args::b),
        fields::written("out", &Args::out),
        fields::read("dequant_scale", &Args::dequant_scale).as_numbers(),
        fields::read("bias", &Args::bias),
        fields::read("out_multiplier", &Args::out_multiplier).as_numbers(),
        fields::written("amax", &Args::amax).as_numbers(),
        fields::plain("trans_a", &Args::trans_a),
        fields::plain("trans_b", &Args::trans_b),
        fields::plain("fast_accum", &Args::fast_accum),
        fields::plain("workspace", &Args::workspace)
            .may_differ<Differs::in_calls>(&look::at_workspace<Args>),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [a, b, out, dequant_scale, bias, out_multiplier, amax, trans_a, trans_b, fast_accum,
                 workspace] = kNoCall<Fp8GemmArgs>;
    return are_listed<Fp8GemmArgs>(a, b, out, dequant_scale, bias, out_multiplier, amax, trans_a,
                                   trans_b, fast_accum, workspace);
}());

}  // namespace jitney
