// Rotary position embedding (RoFormer, Su et al. 2021, arXiv:2104.09864), of q and k in one launch:
// a pair (a, b) of elements of a head becomes (a cos - b sin, a sin + b cos), with the cosine and
// sine that the tables have for the token's position and the pair's number.
#pragma once

#include <optional>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Which elements pair number i has, which takes column i of the tables.
enum class RotaryStyle {
    interleaved,  // 2i and 2i + 1
    half_split,   // i and i + rotary_dim / 2
};

struct RotaryArgs {
    Tensor q;                     // [batch, length, heads, head_dim]: bf16, fp16 or fp32
    std::optional<Tensor> k;      // [batch, length, kv_heads, head_dim], q's dtype
    Tensor q_out;                 // q's shape; q itself (in place), or memory apart from it
    std::optional<Tensor> k_out;  // with k
    // fp32 [positions, rotary_dim / 2]: rotary_dim, twice the table's width, is how many leading
    // elements of each head are rotated; the rest is copied.
    Tensor cos;
    Tensor sin;  // the same shape and strides
    // int32 or int64, [batch, length] or [length]: the row of cos and sin for each token; the index
    // along the length where it is left out. A position outside the table gives NaN on a GPU, and
    // an Error on the host.
    std::optional<Tensor> positions;
    RotaryStyle style = RotaryStyle::interleaved;
};

// Rotates; asynchronous on `stream` for GPU tensors, on the reference backend for host tensors.
// Throws Error before anything is launched.
JITNEY_API void rotary_emb(const RotaryArgs& args, Stream stream = nullptr);

namespace ops {
// The kernel, or an Error that says why not: host tensors are refused.
JITNEY_API void rotary_emb(const RotaryArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
