// Gated activations on the CPU, in fp64.
#pragma once

#include <cstdint>
#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu2 };

// The members mean what those of jitney::GatedActivationArgs mean.
struct GatedActivation {
    Tensor gate;
    std::optional<Tensor> up;
    Tensor out;
    std::optional<Tensor> multiplier;
    std::optional<Tensor> scale;
    Activation activation = Activation::silu;
};

// Throws Error(invalid_argument) where shapes disagree.
void gated_activation(const GatedActivation& call);

}  // namespace jitney::reference
