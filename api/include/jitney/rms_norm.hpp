// Normalising rows: RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467) and LayerNorm (Ba et al.
// 2016, arXiv:1607.06450), of a tensor or of its sum with a residual, in one pass.
//
//     s = x + residual                         rounded to x's dtype, and written to sum
//     y = s / sqrt(mean(s^2) + eps) * weight + bias
//
// All of it is computed in fp32, and y is rounded once: to x's dtype, or to codes of E4M3.
#pragma once

#include <optional>

#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Tensors of rows have x's shape. Their innermost stride is 1, and the dimensions before the last
// can be walked in one stride, which may be any: [rows, d] is the matrix that they make. d is at
// least 1. Odd sizes and strides, and pointers that are no multiple of 16 bytes, cost speed alone.
struct RmsNormArgs {
    Tensor x;  // bf16, fp16 or fp32
    // Added to x first, in x's dtype; both or neither.
    std::optional<Tensor> residual;
    std::optional<Tensor> sum;  // receives x + residual; may be residual itself
    // bf16, fp16 or fp32 [d]; without it, 1.
    std::optional<Tensor> weight;
    std::optional<Tensor> bias;  // [d], of the weight's dtype; only with a weight
    // In x's dtype, and then it may be x itself; or fp8_e4m3, and then the codes are
    // cast(y * multiplier) as fp8_quantize makes them, with one of the two below.
    Tensor out;
    std::optional<Tensor> multiplier;  // one fp32, on x's device
    // fp32 [rows]: each row gets the multiplier that takes its largest |y| to 448, or 1 where that
    // is 0, infinite or NaN, and its inverse is written here: y is about code * scale.
    std::optional<Tensor> scale;
    std::optional<float> eps;      // not negative, and finite; 1e-6 where it is left out
    bool one_plus_weight = false;  // y is multiplied by 1 + weight instead
    bool subtract_mean = false;    // LayerNorm: each row's mean is taken off s first
};

// A row's result depends on that row alone, not on how many there are. Asynchronous on `stream` for
// GPU tensors, on the reference backend for host tensors. Throws Error before anything is launched.
JITNEY_API void rms_norm(const RmsNormArgs& args, Stream stream = nullptr);

// Which kernel a call would run: explain.hpp says how such questions are asked.
JITNEY_API Explanation explain(const RmsNormArgs& args, std::string_view arch = {});

namespace ops {
// The kernel, or an Error that says why not: host tensors are refused.
JITNEY_API void rms_norm(const RmsNormArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
