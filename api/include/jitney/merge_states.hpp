// Merging partial results of attention over different keys into the result over all of them: of a
// shared prefix and each request's own keys, of the parts of a context on several GPUs (Ye et al.
// 2025, arXiv:2501.01005, section 2.2).
#pragma once

#include <optional>
#include <span>

#include "jitney/attention.hpp"
#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// What attention gave for the same queries over some of the keys. Both tensors may have one more
// dimension, the first: so many partial results behind each other.
struct PartialState {
    Tensor out;  // [batch, q_len, heads, head_dim], or [total_q, heads, head_dim]: bf16, fp16, fp32
    Tensor lse;  // fp32 [batch, heads, q_len], or [total_q, heads]: natural log
};

struct MergeStatesArgs {
    // One to 16 of them, two or more partial results in all; all tensors of one dtype and device.
    std::span<const PartialState> parts = {};
    // As the parts' without the number of parts. In place, out and lse are those of one part, both;
    // else they lie apart from all parts, and lse may be left out.
    Tensor out;
    std::optional<Tensor> lse;
};

// Each row becomes the sum of the parts' rows, weighted by exp(lse), over the sum of the weights;
// its LSE becomes the logarithm of that sum. A part whose LSE is -inf has no influence, whatever
// its row holds; a row of such parts alone gives 0 and LSE -inf. An LSE of +inf or NaN makes the
// row NaN, and its LSE. Asynchronous on `stream` for GPU tensors, on the reference backend for host
// tensors. Throws Error before anything is launched.
JITNEY_API void merge_states(const MergeStatesArgs& args, Stream stream = nullptr);

// Which kernel a call would run: explain.hpp says how such questions are asked.
JITNEY_API Explanation explain(const MergeStatesArgs& args, std::string_view arch = {});

namespace ops {
// The kernel, or an Error that says why not: host tensors are refused.
JITNEY_API void merge_states(const MergeStatesArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
