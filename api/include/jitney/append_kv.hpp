// Appending new keys and values to a cache, K and V in one launch, ragged or not; with rotary
// embedding on the way where that is wanted.
#pragma once

#include <optional>

#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/rotary.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// All tensors live on one device; new_k, new_v, k, v and q share one dtype: bf16, fp16 or fp32.
struct AppendKvArgs {
    // [batch, new_len, kv_heads, head_dim], or ragged [total_new, kv_heads, head_dim]: the last
    // keys and values of each request, which its length counts already.
    Tensor new_k;
    Tensor new_v;
    // int32 [batch + 1]: request b has the rows new_indptr[b] to new_indptr[b + 1]. The qo_indptr
    // of the attention that follows, where each new token asks too.
    std::optional<Tensor> new_indptr;

    // The cache, in any of the forms that jitney::AttentionArgs describes, by the same fields. No
    // two new rows have one place: the host refuses that; on a GPU, where the tables are read by
    // the kernel alone, either row stays there.
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

    // Rotary embedding of the keys as they are written, as jitney::RotaryArgs describes it: the
    // tables together, or neither.
    std::optional<Tensor> cos;
    std::optional<Tensor> sin;
    // int32 or int64, [batch, new_len] or [new_len]; ragged: [total_new]. The place of the key in
    // its request where it is left out. A position outside the tables gives NaN on a GPU, and an
    // Error on the host.
    std::optional<Tensor> positions;
    RotaryStyle style = RotaryStyle::interleaved;
    // The queries of the same tokens, rotated in the same launch: [batch, new_len, q_heads,
    // head_dim] or [total_new, q_heads, head_dim]. q_out is q itself (in place), or memory apart.
    std::optional<Tensor> q;
    std::optional<Tensor> q_out;
};

// Writes each new key and value to its place. A row of new_k that belongs to no request is not
// looked at. Where a request is shorter than its new rows, the first of them are left out, and
// their queries as well where there are no positions. Index tensors are read by the kernel, so that
// a captured launch follows them. Asynchronous on `stream` for GPU tensors, on the reference
// backend for host tensors. Throws Error before anything is launched.
JITNEY_API void append_kv(const AppendKvArgs& args, Stream stream = nullptr);

// Which kernel a call would run: explain.hpp says how such questions are asked.
JITNEY_API Explanation explain(const AppendKvArgs& args, std::string_view arch = {});

namespace ops {
// The kernel, or an Error that says why not: host tensors are refused.
JITNEY_API void append_kv(const AppendKvArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
