// Attention: softmax(scale * Q K^T) V on the GPU or, for host tensors, on the reference backend.
// Queries of one length or ragged; keys and values in one tensor a batch, ragged, in a padded
// cache, or in a pool of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitney/error.hpp"
#include "jitney/logits.hpp"
#include "jitney/tensor.hpp"
#include "jitney/workspace.hpp"

namespace jitney {

// Tensors are views in the layout [batch, length, heads, head_dim] (blhd); any strides, the
// innermost contiguous, so that [batch, heads, length, head_dim] is the same with other strides.
// All tensors live on one device and q, k, v, out share one dtype: bf16, fp16 or fp32, and one
// head_dim, up to 512 on a GPU. A stride of 0 repeats an input; out and lse overlap neither
// themselves nor an input. Index tensors (all that say where requests stand) are int32; a GPU's are
// read by the kernels, so that a captured launch follows what they hold then, and nothing on the
// host can check their values. Nothing is read past a request's length or before the first key that
// the window of one of its queries reaches, nor are pages before that key's looked up; and nothing
// is written to rows that belong to no request. (Hopper's copy engine brings whole boxes: rows of
// the same tensor beside these may be read with them, and come to nothing.)
//
// A key that no query of the request sees has no influence, whatever its K and V hold, NaN and
// infinity included. V of a key that some see has to be finite for all: rows of a tile (up to 128
// packed rows, queries times query heads a KV head; 16 in attn_decode_mma) share it, and a weight
// of 0 does not take a NaN out.
struct AttentionArgs {
    // [batch, q_len, q_heads, head_dim]; ragged: [total_q, q_heads, head_dim].
    Tensor q;
    // [batch, kv_len, kv_heads, head_dim], where kv_heads divides q_heads: query head h reads KV
    // head h / (q_heads / kv_heads). Ragged: [total_kv, kv_heads, head_dim]; paged: the pools, see
    // below.
    Tensor k;
    Tensor v;
    Tensor out;  // as q

    // bool, true = keep: [batch, kv_len], [batch, q_len, kv_len] or
    // [batch, q_heads, q_len, kv_len]; a batch, q_heads or q_len of 1 counts for all, a kv_len
    // never. Where lengths differ, kv_len and q_len are at least those of the longest request, and
    // rows and columns count from the first query and the first key of each request.
    std::optional<Tensor> mask;
    // Query i sees the keys j <= i + (kv_len - q_len) of its request: aligned at the bottom right.
    bool causal = false;
    // Positive and finite; 1 / sqrt(head_dim) where it is left out.
    std::optional<float> scale;
    // fp32 [batch, q_heads, q_len] (ragged: [total_q, q_heads]): receives the natural-log LSE of
    // each row's logits as the softmax sees them: scaled, edited, of the keys that count.
    std::optional<Tensor> lse;

    // Ragged queries: request b has the rows qo_indptr[b] to qo_indptr[b + 1] of q. [batch + 1].
    std::optional<Tensor> qo_indptr;
    // The same numbers on the host, where they are known there: the launch then has no more blocks
    // than there is work. Leave it out where a captured launch will see other numbers. Of host
    // tensors, other numbers than qo_indptr's are refused.
    std::span<const int> qo_indptr_host = {};

    // How many keys each request has, where it is not all of k. One of
    std::optional<Tensor> kv_lens;    // [batch]: the first kv_lens[b] of a padded cache, or pages
    std::optional<Tensor> kv_indptr;  // [batch + 1]: kv_indptr[b + 1] - kv_indptr[b]; without
                                      // pages also the first row of each request in k and v

    // Pages: k and v are pools [pages, page_size, kv_heads, head_dim], of any page size, or
    // [slots, kv_heads, head_dim], which is a page size of 1; other orders are other strides.
    // The pages of a request are named in one of three forms:
    //   token table  row req_pool_indices[b] of req_to_token [requests, max_len]; page size 1;
    //                with kv_indptr or kv_lens
    //   block table  row b of block_table [batch, max_pages]; with kv_lens or kv_indptr
    //   page list    kv_page_indices[kv_page_indptr[b]] on, to kv_page_indptr[b + 1]; the last of
    //                them holds last_page_len[b] keys, from 1 to page_size
    std::optional<Tensor> req_to_token;
    std::optional<Tensor> req_pool_indices;  // [batch]
    std::optional<Tensor> block_table;
    std::optional<Tensor> kv_page_indptr;   // [batch + 1]
    std::optional<Tensor> kv_page_indices;  // [any]
    std::optional<Tensor> last_page_len;    // [batch]
    // About how many keys the longest request has, where the shapes of the tables say far more: it
    // steers the choice of the launch, and no result is wrong where it is.
    std::optional<std::int64_t> max_kv_len;

    // A query whose own place among the keys is p, where the last query stands at the last key,
    // sees the keys p - window_left to p + window_right, both included. -1: no bound.
    int window_left = -1;
    int window_right = -1;
    // Scaled scores become softcap * tanh(score / softcap), as in Gemma 2 (arXiv:2408.00118).
    // Positive and finite.
    std::optional<float> softcap;
    // ALiBi (Press et al. 2022, arXiv:2108.12409), fp32 [q_heads]: slope * |p - key| is subtracted
    // from a score, after the soft cap.
    std::optional<Tensor> alibi_slopes;
    // Attention sinks as gpt-oss learns them, fp32 [q_heads]: a logit without a value, which joins
    // the denominator and the LSE of each row that sees a key. -inf is no sink; +inf or NaN makes
    // these rows NaN, and their LSE.
    std::optional<Tensor> sinks;

    // [batch, new_len, kv_heads, head_dim]: the last new_len keys and values of each request, which
    // its length counts already. They are attended to, and written to their place in k and v, in
    // the same launch. No two of them have one place: the host refuses that; on a GPU nothing tells
    // it, and which of them is attended to is not defined. Of a request that is shorter than
    // new_len the last rows count, and the first are left out. For 1 to 64 queries a request, not
    // ragged.
    std::optional<Tensor> new_k;
    std::optional<Tensor> new_v;

    // The result of a request is the same, bit for bit, whoever shares the batch, wherever in it
    // and in memory the request stands: the kernel, its tiles and the parts that keys are divided
    // into follow from the request's own lengths and the shape of the call (heads, head_dim, dtype,
    // form, options, alignment), for one GPU. max_kv_len, where it is given, must then be no less
    // than the longest length; a longer request is still right, but may depend on it. Where only a
    // page list or kv_indptr tells lengths, give it: a single request could have all keys.
    bool batch_invariant = false;

    // The caller's memory for what kernels need beside the tensors, instead of the library's.
    Workspace workspace = {};

    // CUDA C++ that edits the scores, and the values of its parameters: logits.hpp says more. For
    // tensors on a GPU.
    LogitsFunction logits = {};
    LogitsValues logits_values = {};
};

// Runs attention: picks decode or prefill, the variant and the backend, and falls back (backend.hpp
// says how to steer it). A row that sees no key gives 0 and LSE -inf; zero lengths are legal, and
// requests of length 0 beside others. On the GPU it is asynchronous on `stream`, in the caller's
// current context (the primary context of the tensors' device, for the call, where there is none),
// and it can be captured in a graph once a call has loaded its kernels. Throws Error before
// anything is launched.
JITNEY_API void attention(const AttentionArgs& args, Stream stream = nullptr);

// How large a workspace of the caller's has to be for this call on the GPU of its tensors; 0 where
// it needs none. The data of the tensors may be null; a Scope counts.
JITNEY_API std::size_t workspace_bytes(const AttentionArgs& args);

namespace ops {

enum class Variant {
    scalar,  // without tensor cores: whatever attention takes
    mma,     // bf16 and fp16 on the tensor cores (sm_80 or newer), head_dim a multiple of 8 up to
             // 256, 16-byte aligned pointers and strides
    wgmma,   // attn_prefill alone: Hopper's tensor cores and copy engine (exactly sm_90a). What mma
             // takes, with strides above 0 and masks of up to 131072 keys, or 262144 up to head_dim
             // 128 without pages
};

// Run this very kernel, or throw an Error that says why it can't. attn_decode takes up to 64
// queries a request, not ragged; attn_prefill takes no new_k and new_v; neither takes host tensors.
JITNEY_API void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream = nullptr);
JITNEY_API void attn_decode(const AttentionArgs& args, Variant variant, Stream stream = nullptr);

}  // namespace ops
}  // namespace jitney
