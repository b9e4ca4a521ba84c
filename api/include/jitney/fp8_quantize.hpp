// Casting to the 8-bit floating formats E4M3 and E5M2 (Micikevicius et al. 2022, arXiv:2209.05433).
//
//     code = cast(x * multiplier)      x is about code * scale      scale = 1 / multiplier
//
// The product is rounded to fp32, and the cast rounds it to the nearest code, ties to even. It
// saturates: what is beyond the largest number (448 of E4M3, 57344 of E5M2), infinities included,
// becomes that number; NaN stays NaN.
#pragma once

#include <optional>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"
#include "jitney/workspace.hpp"

namespace jitney {

// The elements that share a scale.
enum class Fp8Granularity {
    tensor,  // all of x
    row,     // a row: a token, or an output channel of a weight
    group,   // 128 neighbouring columns of a row; the last of a row may be fewer
    block,   // 128 rows of 128 columns; the last ones may be fewer
};

// Wherever a number is given or wanted, it is a tensor of one fp32 on x's device (scale may be of
// several): the host never waits for it. What is written shares memory with nothing else of the
// call.
struct Fp8QuantizeArgs {
    // bf16, fp16 or fp32, of any size and alignment. The innermost stride is 1, and the dimensions
    // before the last can be walked in one stride, which may be any: [rows, cols] is the matrix
    // that they make.
    Tensor x;
    // fp8_e4m3 or fp8_e5m2, both of one dtype where both are wanted; without either, amax alone is
    // computed. They take one pass over x.
    std::optional<Tensor> out;             // x's shape
    std::optional<Tensor> out_transposed;  // [cols, rows]
    // What x is multiplied by: read, 1 where it is left out; or, where scaling is dynamic, written.
    std::optional<Tensor> multiplier;
    // Receives 1 / multiplier, where x is empty too: what a product of the codes is corrected by.
    // One number; or, for another granularity, which needs it, fp32 of that shape and of any
    // strides: row by row, or column by column as a product may read them.
    //     row     [rows] or [rows, 1]
    //     group   [rows, ceil(cols / 128)]
    //     block   [ceil(rows / 128), ceil(cols / 128)]
    std::optional<Tensor> scale;
    // Receives the largest |x|, before scaling: NaN where x holds one, 0 where x is empty.
    std::optional<Tensor> amax;
    // The multiplier is made of x itself: the format's largest number divided by amax, and finite;
    // 1 where amax is 0, infinite or NaN. Takes a second pass, but for other granularities than the
    // tensor.
    bool dynamic = false;
    // The parts whose amax scales them. All but the tensor ask for `dynamic`, and make
    // `scale` and `out` alone, in one pass over x.
    Fp8Granularity granularity = Fp8Granularity::tensor;
    // Multipliers of dynamic scaling are rounded down to powers of two, so that scales are powers
    // of two, which change no digit of what they multiply, and nothing saturates.
    bool power_of_two = false;
    // The caller's memory for the counters behind amax; else the library's own, which a captured
    // call has to allocate in its graph.
    Workspace workspace = {};
};

// How large a workspace of the caller's has to be for this call; 0 where it needs none.
JITNEY_API std::size_t workspace_bytes(const Fp8QuantizeArgs& args);

// Asynchronous on `stream` for GPU tensors, on the reference backend for host tensors. Throws Error
// before anything is launched.
JITNEY_API void fp8_quantize(const Fp8QuantizeArgs& args, Stream stream = nullptr);

namespace ops {
// The kernel of its granularity, or an Error that says why not: host tensors are refused.
JITNEY_API void fp8_quantize(const Fp8QuantizeArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
