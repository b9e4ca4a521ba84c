// Attention on the CPU, accumulated in fp64: the fallback backend, and the oracle of the tests.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// softmax(q k^T * scale) v over host tensors. fp32, fp16 and bf16 may be mixed freely between q, k,
// v and out; the result is rounded once, to out's format. Every stride is honoured, the innermost
// one and strides of 0 too.
struct Attention {
    Tensor q;                     // [batch, q_len, q_heads, head_dim]
    Tensor k;                     // [batch, kv_len, kv_heads, head_dim]; kv_heads divides q_heads
    Tensor v;                     // [batch, kv_len, kv_heads, value_dim]
    Tensor out;                   // [batch, q_len, q_heads, value_dim]
    std::optional<Tensor> mask;   // boolean, true = keep: [batch, kv_len], [batch, q_len, kv_len]
                                  // or [batch, heads, q_len, kv_len]; a size of 1 is broadcast
    std::optional<Tensor> lse;    // fp32 [batch, q_heads, q_len], the natural logarithm
    bool causal = false;          // query i sees the keys j <= i + (kv_len - q_len)
    std::optional<double> scale;  // 1 / sqrt(head_dim) unless given
};

// A row that sees no key becomes 0, with LSE -inf. Keys and values that a row does not see have no
// influence on it, whatever they hold. Throws Error(invalid_argument) where the shapes disagree.
void attention(const Attention& call);

}  // namespace jitney::reference
