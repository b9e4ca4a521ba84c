#include "operations/call_form.hpp"

#include <algorithm>

namespace jitney {
namespace {

// In place where the prepared call was.
bool same_place(const Tensor& x, const Tensor& out, const Tensor& prepared_x,
                const Tensor& prepared_out) noexcept {
    return (x.data == out.data) == (prepared_x.data == prepared_out.data);
}

// The first size of `a` does not count.
bool same_but_for_size(const std::optional<Tensor>& a, const std::optional<Tensor>& b) noexcept {
    if (!a || !b) return a.has_value() == b.has_value();
    Tensor sized = *a;
    sized.shape[0] = b->shape[0];
    return same_form(sized, *b);
}

bool same_kinds(const LogitsValues& a, const LogitsValues& b) noexcept {
    return std::ranges::equal(a, b, {}, &LogitsValue::kind, &LogitsValue::kind);
}

}  // namespace

// All fields are named, so that one that is added does not compile until it is compared too.

bool same_form(const AttentionArgs& args, const AttentionArgs& prepared, Lengths lengths) noexcept {
    const auto& [q, k, v, out, mask, causal, scale, lse, qo_indptr, qo_indptr_host, kv_lens,
                 kv_indptr, req_to_token, req_pool_indices, block_table, kv_page_indptr,
                 kv_page_indices, last_page_len, max_kv_len, window_left, window_right, softcap,
                 alibi_slopes, sinks, new_k, new_v, batch_invariant, workspace, logits,
                 logits_values] = prepared;
    return same_form(args.q, q) && same_form(args.k, k) && same_form(args.v, v) &&
           same_form(args.out, out) && same_form(args.mask, mask) && args.causal == causal &&
           args.scale == scale && same_form(args.lse, lse) &&
           same_form(args.qo_indptr, qo_indptr) && same_form(args.kv_lens, kv_lens) &&
           same_form(args.kv_indptr, kv_indptr) && same_form(args.req_to_token, req_to_token) &&
           same_form(args.req_pool_indices, req_pool_indices) &&
           same_form(args.block_table, block_table) &&
           same_form(args.kv_page_indptr, kv_page_indptr) &&
           same_form(args.last_page_len, last_page_len) && args.window_left == window_left &&
           args.window_right == window_right && args.softcap == softcap &&
           same_form(args.alibi_slopes, alibi_slopes) && same_form(args.sinks, sinks) &&
           same_form(args.new_k, new_k) && same_form(args.new_v, new_v) &&
           args.batch_invariant == batch_invariant && args.logits == logits &&
           same_kinds(args.logits_values, logits_values) &&
           (lengths == Lengths::any ? same_but_for_size(args.kv_page_indices, kv_page_indices)
                                    : same_form(args.kv_page_indices, kv_page_indices) &&
                                          args.max_kv_len == max_kv_len &&
                                          std::ranges::equal(args.qo_indptr_host, qo_indptr_host));
}

bool same_form(const RotaryArgs& args, const RotaryArgs& prepared) noexcept {
    const auto& [q, k, q_out, k_out, cos, sin, positions, style] = prepared;
    return same_form(args.q, q) && same_form(args.k, k) && same_form(args.q_out, q_out) &&
           same_form(args.k_out, k_out) && same_form(args.cos, cos) && same_form(args.sin, sin) &&
           same_form(args.positions, positions) && args.style == style &&
           same_place(args.q, args.q_out, q, q_out) &&
           (!args.k || same_place(*args.k, *args.k_out, *k, *k_out));
}

}  // namespace jitney
