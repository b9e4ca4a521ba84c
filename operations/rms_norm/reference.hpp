// Normalising rows on the CPU, in fp64.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// The members mean what those of jitney::RmsNormArgs mean.
struct RmsNorm {
    Tensor x;
    std::optional<Tensor> residual;
    std::optional<Tensor> sum;
    std::optional<Tensor> weight;
    std::optional<Tensor> bias;
    Tensor out;
    std::optional<Tensor> multiplier;
    std::optional<Tensor> scale;
    double eps = 1e-6;
    bool one_plus_weight = false;
    bool subtract_mean = false;
};

// Throws Error(invalid_argument) where shapes disagree.
void rms_norm(const RmsNorm& call);

}  // namespace jitney::reference
