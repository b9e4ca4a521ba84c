// fp8_quantize on the CPU: the product in fp32, as the kernel has it, and one cast.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

enum class Fp8Granularity { tensor, row, group, block };

struct Fp8Quantize {
    Tensor x;  // [rows, cols]: fp32, fp16 or bf16
    // e4m3 or e5m2; either may be missing.
    std::optional<Tensor> out;             // [rows, cols]
    std::optional<Tensor> out_transposed;  // [cols, rows]
    // One fp32 each, but for the scales of other granularities than the tensor: [rows] or
    // [rows, 1], [rows, ceil(cols / 128)], [ceil(rows / 128), ceil(cols / 128)], by any strides.
    // `multiplier` is read, or written where scaling is dynamic.
    std::optional<Tensor> multiplier;
    std::optional<Tensor> scale;
    std::optional<Tensor> amax;
    bool dynamic = false;
    Fp8Granularity granularity = Fp8Granularity::tensor;
    bool power_of_two = false;  // dynamic multipliers are rounded down to powers of two
    // The row of a state, whose multiplier is read instead: one of 0 has no history, and x is cast
    // by its own amax, which the row receives in it.
    float* state = nullptr;
    bool by_scale = false;  // `multiplier` has its inverse
};

// Throws Error(invalid_argument) where shapes disagree.
void fp8_quantize(const Fp8Quantize& call);

}  // namespace jitney::reference
