// Attention. softmax(scale * Q K^T) V over dense tensors, on the GPU or, for host tensors, on the
// reference backend.
#pragma once

#include <optional>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Tensors are views in the layout [batch, length, heads, head_dim] (blhd); any strides, the
// innermost contiguous, so that [batch, heads, length, head_dim] is the same with other strides.
// All tensors live on one device and q, k, v, out share one dtype: bf16, fp16 or fp32. A stride of
// 0 repeats an input; out and lse overlap neither themselves nor an input.
struct AttentionArgs {
    Tensor q;    // [batch, q_len, q_heads, head_dim]
    Tensor k;    // [batch, kv_len, kv_heads, head_dim]; kv_heads divides q_heads
    Tensor v;    // [batch, kv_len, kv_heads, head_dim]
    Tensor out;  // [batch, q_len, q_heads, head_dim]

    // bool, true = keep: [batch, kv_len], [batch, q_len, kv_len] or
    // [batch, q_heads, q_len, kv_len]; a batch, q_heads or q_len of 1 counts for all.
    std::optional<Tensor> mask;
    // Query i sees the keys j <= i + (kv_len - q_len): aligned at the bottom right.
    bool causal = false;
    // Positive and finite; 1 / sqrt(head_dim) where it is left out.
    std::optional<float> scale;
    // fp32 [batch, q_heads, q_len]: receives the natural-log LSE of the scaled scores of each row.
    std::optional<Tensor> lse;
};

// Runs attention: picks decode or prefill, the variant and the backend, and falls back (backend.hpp
// says how to steer it). A row that sees no key gives 0 and LSE -inf; zero lengths are legal. On
// the GPU it is asynchronous on `stream`, in the caller's current context (the primary context of
// the tensors' device where there is none), and it can be captured in a graph once a call has
// loaded its kernel. Throws Error before anything is launched.
JITNEY_API void attention(const AttentionArgs& args, Stream stream = nullptr);

namespace ops {

enum class Variant { scalar, mma };

// Run this very kernel: they fail, with the reason, where it can't run the problem.
JITNEY_API void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream = nullptr);
JITNEY_API void attn_decode(const AttentionArgs& args, Variant variant, Stream stream = nullptr);

}  // namespace ops
}  // namespace jitney
