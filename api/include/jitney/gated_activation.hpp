// The gate of a feed-forward layer (Shazeer 2020, arXiv:2002.05202): out = activation(gate) * up,
// element by element, in one pass. It is computed in fp32 and rounded once: to the dtype of the
// inputs, or to codes of E4M3.
#pragma once

#include <cstdint>
#include <optional>

#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

enum class Activation : std::uint8_t {
    silu = 0,       // x / (1 + e^-x)
    gelu = 1,       // x (1 + erf(x / sqrt(2))) / 2
    gelu_tanh = 2,  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
    relu2 = 3,      // max(x, 0)^2
};

// The innermost stride of each tensor is 1, and the dimensions before the last can be walked in one
// stride, which may be any: [rows, d] is the matrix that they make. d is at least 1. Odd sizes and
// strides, and pointers that are no multiple of 16 bytes, cost speed alone.
struct GatedActivationArgs {
    Tensor
        gate;  // bf16, fp16 or fp32 [..., d]; without `up`, [..., 2d]: the gate, and up behind it
    std::optional<Tensor> up;  // of the gate's shape and dtype
    // [..., d], in the gate's dtype, and then it may be the gate itself, where up is given; or
    // fp8_e4m3, and then the codes are cast(value * multiplier) as fp8_quantize makes them, with
    // one of the two below.
    Tensor out;
    std::optional<Tensor> multiplier;  // one fp32, on the gate's device
    // fp32 [rows]: each row gets the multiplier that takes its largest magnitude to 448, or 1 where
    // that is 0, infinite or NaN, and its inverse is written here: a value is about code * scale.
    std::optional<Tensor> scale;
    Activation activation = Activation::silu;
};

// Asynchronous on `stream` for GPU tensors, on the reference backend for host tensors. Throws Error
// before anything is launched.
JITNEY_API void gated_activation(const GatedActivationArgs& args, Stream stream = nullptr);

// Which kernel a call would run: explain.hpp says how such questions are asked.
JITNEY_API Explanation explain(const GatedActivationArgs& args, std::string_view arch = {});

namespace ops {
// The kernel, or an Error that says why not: host tensors are refused.
JITNEY_API void gated_activation(const GatedActivationArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
