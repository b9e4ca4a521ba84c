// Attention on the CPU, accumulated in fp64: the fallback backend, and the oracle of the tests.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// softmax(q k^T * scale) v over host tensors. fp32, fp16 and bf16 may be mixed freely between q, k,
// v and out; the result is rounded once, to out's format. Every stride is honoured, the innermost
// one and strides of 0 too. The fields mean what those of jitney::AttentionArgs mean.
struct Attention {
    Tensor q;                     // [batch, q_len, q_heads, head_dim]; ragged: [total_q, ...]
    Tensor k;                     // [batch, kv_len, kv_heads, head_dim]; kv_heads divides q_heads;
    Tensor v;                     // ragged: [total_kv, ...]; paged: [pages, page_size, ...]
    Tensor out;                   // as q, with the value_dim of v
    std::optional<Tensor> mask;   // boolean, true = keep: [batch, kv_len], [batch, q_len, kv_len]
                                  // or [batch, heads, q_len, kv_len]; a size of 1 is broadcast
    std::optional<Tensor> lse;    // fp32 [batch, q_heads, q_len], the natural logarithm; ragged:
                                  // [total_q, q_heads]
    bool causal = false;          // query i sees the keys j <= i + (kv_len - q_len)
    std::optional<double> scale;  // 1 / sqrt(head_dim) unless given

    std::optional<Tensor> qo_indptr;
    std::optional<Tensor> kv_indptr;
    std::optional<Tensor> kv_lens;
    std::optional<Tensor> req_to_token;
    std::optional<Tensor> req_pool_indices;
    std::optional<Tensor> block_table;
    std::optional<Tensor> kv_page_indptr;
    std::optional<Tensor> kv_page_indices;
    std::optional<Tensor> last_page_len;

    int window_left = -1;
    int window_right = -1;
    std::optional<double> softcap;
    std::optional<Tensor> alibi_slopes;
    std::optional<Tensor> sinks;

    std::optional<Tensor> new_k;  // written to where k and v keep the last keys of each request
    std::optional<Tensor> new_v;
};

// Throws Error(invalid_argument) where the shapes disagree, or where what the index tensors hold
// can't be: ends before beginnings, lengths beyond the tables, pages that the pool does not have, a
// last page that is fuller than a page, one place for two new keys. Looks at no other values, and
// only the index tensors need memory.
void check(const Attention& call);

// A row that sees no key becomes 0, with LSE -inf. Keys and values that a row does not see have no
// influence on it, whatever they hold. Throws what check() throws.
void attention(const Attention& call);

}  // namespace jitney::reference
