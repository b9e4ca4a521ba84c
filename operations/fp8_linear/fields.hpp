// The arguments of a linear layer on FP8, forward and backward.
#pragma once

#include "jitney/fp8_linear.hpp"
#include "operations/call_fields.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {

template <>
struct CallFields<Fp8Recipe> {
    using Args = Fp8Recipe;
    static constexpr std::tuple all{
        fields::plain("recipe.formats", &Args::formats),
        fields::plain("recipe.scaling", &Args::scaling),
        fields::plain("recipe.history", &Args::history),
        fields::plain("recipe.amax", &Args::amax),
        fields::plain("recipe.margin", &Args::margin),
    };
};

// The forward call writes them, the backward call reads them.
template <>
struct CallFields<Fp8LinearSaved> {
    using Args = Fp8LinearSaved;
    static constexpr std::tuple all{
        fields::plain("saved.x_codes", &Args::x_codes),
        fields::plain("saved.weight_codes", &Args::weight_codes),
        fields::plain("saved.scales", &Args::scales).as_numbers(),
    };
};

template <>
struct CallFields<Fp8LinearArgs> {
    using Args = Fp8LinearArgs;
    static constexpr std::tuple all{
        fields::read("x", &Args::x),
        fields::read("weight", &Args::weight),
        fields::read("bias", &Args::bias),
        fields::written("y", &Args::y),
        fields::updated("state", &Args::state).as_numbers(),
        fields::written("saved", &Args::saved),
        fields::plain("recipe", &Args::recipe),
        fields::plain("fast_accum", &Args::fast_accum),
        fields::plain("workspace", &Args::workspace)
            .may_differ<Differs::in_calls>(&look::at_workspace<Args>),
    };
};

template <>
struct CallFields<Fp8LinearBackwardArgs> {
    using Args = Fp8LinearBackwardArgs;
    static constexpr std::tuple all{
        fields::read("grad_y", &Args::grad_y),
        fields::read("saved", &Args::saved),
        fields::written("grad_x", &Args::grad_x),
        fields::written("grad_weight", &Args::grad_weight),
        fields::written("grad_bias", &Args::grad_bias),
        fields::updated("state", &Args::state).as_numbers(),
        fields::plain("recipe", &Args::recipe),
        fields::plain("fast_accum", &Args::fast_accum),
        fields::plain("workspace", &Args::workspace)
            .may_differ<Differs::in_calls>(&look::at_workspace<Args>),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [formats, scaling, history, amax, margin] = kNoCall<Fp8Recipe>;
    return are_listed<Fp8Recipe>(formats, scaling, history, amax, margin);
}());
static_assert([] {
    const auto& [x_codes, weight_codes, scales] = kNoCall<Fp8LinearSaved>;
    return are_listed<Fp8LinearSaved>(x_codes, weight_codes, scales);
}());
static_assert([] {
    const auto& [x, weight, bias, y, state, saved, recipe, fast_accum, workspace] =
        kNoCall<Fp8LinearArgs>;
    return are_listed<Fp8LinearArgs>(x, weight, bias, y, state, saved, recipe, fast_accum,
                                     workspace);
}());
static_assert([] {
    const auto& [grad_y, saved, grad_x, grad_weight, grad_bias, state, recipe, fast_accum,
                 workspace] = kNoCall<Fp8LinearBackwardArgs>;
    return are_listed<Fp8LinearBackwardArgs>(grad_y, saved, grad_x, grad_weight, grad_bias, state,
                                             recipe, fast_accum, workspace);
}());

}  // namespace jitney
