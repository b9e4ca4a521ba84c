// Products of FP8 matrices on the CPU: exact products, added in fp64, rounded once.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// out = op(a) op(b) * scale + bias, or with the scales of a and b, of which each product of codes
// has one each, in the place of `scale`. Strides may be any.
// Rows that belong to groups are multiplied with a matrix b of their group.
struct Fp8Gemm {
    Tensor a;  // [m, k], or [k, m] where transposed: e4m3 or e5m2
    Tensor b;  // [k, n], or [n, k] where transposed
    bool trans_a = false;
    bool trans_b = false;
    std::optional<Tensor> scale;         // one fp32
    std::optional<Tensor> scale_a;       // fp32: [1], [m] or [m, ceil(k / 128)]
    std::optional<Tensor> scale_b;       // fp32: [1], [n] or [ceil(n / 128), ceil(k / 128)]
    std::optional<Tensor> bias;          // [n]: bf16 or fp32
    Tensor out;                          // [m, n]: any floating format
    std::optional<Tensor> multiplier;    // one fp32, of an output in FP8
    std::optional<Tensor> group_indptr;  // int32 [groups + 1]; b, and scale_b and bias where they
                                         // differ, have the groups as their first dimension
    std::optional<Tensor> amax;  // one fp32: the largest |out| before the multiplier, or NaN
};

// Throws Error(invalid_argument) where shapes disagree: then nothing has been written.
void fp8_gemm(const Fp8Gemm& call);

}  // namespace jitney::reference
