// The arguments of gated_activation.
#pragma once

#include "jitney/gated_activation.hpp"
#include "jitney/jitney.h"
#include "operations/common_fields.hpp"

namespace jitney {

template <>
struct CallFields<GatedActivationArgs> {
    using Args = GatedActivationArgs;
    using C = jitney_gated_activation_args;
    static constexpr auto c_first = &C::reserved;
    static constexpr const char* does =
        "The gate of a feed-forward layer: activation(gate) * up, element by element";
    static constexpr std::tuple all{
        fields::source("gate", &Args::gate)
            .told("what the activation is done to; without up, both side by side",
                  {.shape = "up: [rows..., d] | [rows..., cols]", .dtypes = fields::kFloating},
                  &C::gate),
        fields::read("up", &Args::up)
            .told("what that is multiplied by", {"[rows..., d]", fields::kFloating}, &C::up),
        fields::result("out", &Args::out, "gate", &Args::gate)
            .told("the result, in the gate's dtype, and then it may be the gate itself where up is "
                  "given; or codes of E4M3",
                  {.shape = "up: [rows..., d] | [rows..., cols / 2]",
                   .dtypes = "bf16|fp16|fp32|e4m3",
                   .like = "gate"},
                  &C::out),
        fields::kRowMultiplierField<Args, C>,
        fields::kRowScaleField<Args, C>,
        fields::plain("activation", &Args::activation)
            .told("of the gate", {.words = "silu|gelu|gelu_tanh|relu2"}, &C::activation),
    };
};

static_assert(lists_all_members<GatedActivationArgs>());
static_assert(covers_c_struct<CallFields<GatedActivationArgs>, jitney_gated_activation_args>());

}  // namespace jitney
