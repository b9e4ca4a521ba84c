// A linear layer whose products are of FP8 codes, forward and backward, and the recipes that scale
// its tensors (Micikevicius et al. 2022, arXiv:2209.05433).
//
//     y = x weight^T + bias      grad_x = grad_y weight      grad_weight = grad_y^T x
//
// fp8_quantize.hpp says what multipliers and scales are. All state is on the device of the tensors,
// nothing waits for the host, and both calls can be captured in a graph once they have run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"
#include "jitney/workspace.hpp"

namespace jitney {

// Formats of x and weight, and of grad_y.
enum class Fp8Formats {
    e4m3,
    e5m2,
    hybrid,  // E4M3 forward; E5M2, which reaches further, for the gradient
};

enum class Fp8Scaling {
    delayed,  // by the amax of earlier steps, so that a tensor is read once
    dynamic,  // by the tensor's own amax, for which it is read once more
};

// Which amax of a tensor delayed scaling goes by.
enum class Fp8Amax {
    window,  // the largest of the last `history` steps
    latest,  // the last step's
};

struct Fp8Recipe {
    Fp8Formats formats = Fp8Formats::hybrid;
    Fp8Scaling scaling = Fp8Scaling::delayed;
    // Of delayed scaling. The multiplier of the next step is (largest number of the format / amax)
    // / 2^margin: a larger margin is more headroom, and never saturates more. It is taken from the
    // small values: those below amax * 2^margin / 2^18.8 (E5M2: 2^32.8) have the code 0. Where amax
    // is 0, infinite or NaN, the multiplier stays. Neither it nor its inverse is ever infinite or
    // 0.
    int history = 16;  // 1 to 4096
    Fp8Amax amax = Fp8Amax::window;
    // 0 to 18, and to 32 where all formats are E5M2: with more than that all codes would be 0.
    int margin = 0;
};

// Columns of a layer's state: fp32 [3, columns], contiguous, on the device; the rows are those of
// x, weight and grad_y. It is all that there is: copying its bytes saves it, copying them back
// restores it. A row holds the multiplier, its inverse, the last amax, a number of the last call,
// and the history, the latest first. A multiplier of 0 says that there is no history: then the
// tensor is cast by its own amax, as dynamic scaling does, and the history begins with the first
// amax that is neither 0 nor infinite nor NaN. The device decides it, with the same launches.
JITNEY_API int fp8_state_columns(const Fp8Recipe& recipe);
// Makes it a state without a history, which is all zeros. Asynchronous on `stream` for a GPU's.
JITNEY_API void fp8_state_reset(const Tensor& state, Stream stream = nullptr);

// What the forward call leaves for the backward one: the codes, and the scales that they have,
// which later steps do not change.
struct Fp8LinearSaved {
    Tensor x_codes;       // x's shape: fp8_e4m3 or fp8_e5m2, as the recipe says
    Tensor weight_codes;  // [out_features, in_features], the same format
    Tensor scales;        // fp32 [2]: of x_codes and weight_codes
};

struct Fp8LinearArgs {
    Tensor x;                    // [..., in_features]: bf16, fp16 or fp32
    Tensor weight;               // [out_features, in_features]: bf16, fp16 or fp32
    std::optional<Tensor> bias;  // [out_features]: bf16 or fp32
    Tensor y;                    // [..., out_features]: bf16, fp16 or fp32
    Tensor state;                // fp32 [3, fp8_state_columns(recipe)]
    // Without it the codes are kept in the workspace, and there is no backward.
    std::optional<Fp8LinearSaved> saved;
    Fp8Recipe recipe;
    bool fast_accum = false;  // as of fp8_gemm
    // The caller's memory for codes that are not saved, partial sums and counters; else the
    // library's own, which a captured call has to allocate in its graph. Host tensors need none.
    Workspace workspace = {};
};

struct Fp8LinearBackwardArgs {
    Tensor grad_y;         // [..., out_features]: bf16, fp16 or fp32
    Fp8LinearSaved saved;  // of the forward call; grad_weight is of x_codes, grad_x of weight_codes
    // What is wanted; at least one. bf16, fp16 or fp32.
    std::optional<Tensor> grad_x;       // [..., in_features]
    std::optional<Tensor> grad_weight;  // [out_features, in_features]
    std::optional<Tensor> grad_bias;    // [out_features]: the sum of grad_y, before it is cast
    Tensor state;  // its row of grad_y moves on, whichever gradients are wanted
    Fp8Recipe recipe;
    bool fast_accum = false;
    Workspace workspace = {};
};

// The layer of a checkpoint whose weight is in FP8 already: y = x weight^T + bias, without a state.
// x is cast in the same call, by a scale that is given or by its own amax.
struct Fp8LinearInferenceArgs {
    Tensor x;       // [..., in_features]: bf16, fp16 or fp32; cast to E4M3
    Tensor weight;  // [out_features, in_features]: fp8_e4m3 or fp8_e5m2
    // fp32, of any strides: what the codes of weight are multiplied by.
    //     one number                              all of weight
    //     [out_features], [out_features, 1]       an output channel
    //     [ceil(out_features / 128), ceil(in_features / 128)]    a block of 128 by 128
    Tensor weight_scale;
    // One fp32, which a calibration found: the codes of x are those of x / x_scale. Left out, each
    // row of x has a scale of its own; where weight has one a block, each 128 columns of a row.
    // fp8_quantize.hpp says what dynamic scales are.
    std::optional<Tensor> x_scale;
    std::optional<Tensor> bias;  // [out_features]: bf16 or fp32
    Tensor y;                    // [..., out_features]: bf16, fp16 or fp32
    bool fast_accum = false;     // as of fp8_gemm
    // The caller's memory for the codes of x, their scales, partial sums and counters; else the
    // library's own.
    Workspace workspace = {};
};

// How large a workspace of the caller's has to be for this call; 0 where it needs none.
JITNEY_API std::size_t workspace_bytes(const Fp8LinearArgs& args);
JITNEY_API std::size_t workspace_bytes(const Fp8LinearBackwardArgs& args);
JITNEY_API std::size_t workspace_bytes(const Fp8LinearInferenceArgs& args);

// Run on the GPU, or on the reference backend for host tensors. What is written, the state too,
// shares memory with nothing else of the call; what is only read may. A call without rows or
// out_features does nothing to the state, since only what ran rolls, and nothing to the codes that
// are saved; the scales that it saves are the state's, 1 where that has no history. Throw Error
// where arguments can't be meant, before anything is launched.
JITNEY_API void fp8_linear(const Fp8LinearArgs& args, Stream stream = nullptr);
JITNEY_API void fp8_linear_backward(const Fp8LinearBackwardArgs& args, Stream stream = nullptr);
JITNEY_API void fp8_linear_inference(const Fp8LinearInferenceArgs& args, Stream stream = nullptr);

// Which kernels a call would launch: explain.hpp says how such questions are asked.
JITNEY_API ExplainedLaunches explain(const Fp8LinearArgs& args, std::string_view arch = {});
JITNEY_API ExplainedLaunches explain(const Fp8LinearBackwardArgs& args, std::string_view arch = {});
JITNEY_API ExplainedLaunches explain(const Fp8LinearInferenceArgs& args,
                                     std::string_view arch = {});

}  // namespace jitney
