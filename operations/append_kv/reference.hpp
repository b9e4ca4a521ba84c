// Appending new keys and values to a cache on the CPU.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"
#include "operations/rotary/reference.hpp"

namespace jitney::reference {

// The fields mean what those of jitney::AppendKvArgs mean.
struct AppendKv {
    Tensor new_k;  // [batch, new_len, kv_heads, head_dim]; ragged: [total_new, ...]
    Tensor new_v;
    std::optional<Tensor> new_indptr;
    Tensor k;
    Tensor v;
    std::optional<Tensor> kv_lens;
    std::optional<Tensor> kv_indptr;
    std::optional<Tensor> req_to_token;
    std::optional<Tensor> req_pool_indices;
    std::optional<Tensor> block_table;
    std::optional<Tensor> kv_page_indptr;
    std::optional<Tensor> kv_page_indices;
    std::optional<Tensor> last_page_len;
    std::optional<Tensor> cos;
    std::optional<Tensor> sin;
    std::optional<Tensor> positions;
    RotaryStyle style = RotaryStyle::interleaved;
    std::optional<Tensor> q;
    std::optional<Tensor> q_out;
};

// Throws Error(invalid_argument) as attention() does for such a cache, and as rotary() does for
// such positions; nothing has been written then.
void append_kv(const AppendKv& call);

}  // namespace jitney::reference
