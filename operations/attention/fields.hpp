// The arguments of an attention call.
#pragma once

#include <algorithm>

#include "jitney/attention.hpp"
#include "operations/call_fields.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {

// Each of these looks at what may differ between calls that share what was prepared, as the check
// of a call does: check.cpp and check_requests.cpp.
namespace look {
bool at_host_indptr(const AttentionArgs& args, const AttentionArgs&) noexcept;
bool at_page_list(const AttentionArgs& args, const AttentionArgs& prepared) noexcept;
bool at_max_kv_len(const AttentionArgs& args, const AttentionArgs&) noexcept;
bool at_logits_values(const AttentionArgs& args, const AttentionArgs& prepared) noexcept;
}  // namespace look

template <>
struct CallFields<AttentionArgs> {
    using Args = AttentionArgs;
    static constexpr bool appends(const Args& args) noexcept { return args.new_k.has_value(); }
    static constexpr std::tuple all{
        fields::read("q", &Args::q),
        fields::updated("k", &Args::k).only_where(&appends),
        fields::updated("v", &Args::v).only_where(&appends),
        fields::written("out", &Args::out),
        fields::read("mask", &Args::mask),
        fields::plain("causal", &Args::causal),
        fields::plain("scale", &Args::scale),
        fields::written("lse", &Args::lse),
        fields::read("qo_indptr", &Args::qo_indptr),
        fields::plain("qo_indptr_host", &Args::qo_indptr_host)
            .may_differ<Differs::in_runs>(&look::at_host_indptr),
        fields::read("kv_lens", &Args::kv_lens),
        fields::read("kv_indptr", &Args::kv_indptr),
        fields::read("req_to_token", &Args::req_to_token),
        fields::read("req_pool_indices", &Args::req_pool_indices),
        fields::read("block_table", &Args::block_table),
        fields::read("kv_page_indptr", &Args::kv_page_indptr),
        fields::read("kv_page_indices", &Args::kv_page_indices)
            .may_differ<Differs::in_runs>(&look::at_page_list),
        fields::read("last_page_len", &Args::last_page_len),
        fields::plain("max_kv_len", &Args::max_kv_len)
            .may_differ<Differs::in_runs>(&look::at_max_kv_len),
        fields::plain("window_left", &Args::window_left),
        fields::plain("window_right", &Args::window_right),
        fields::plain("softcap", &Args::softcap),
        fields::read("alibi_slopes", &Args::alibi_slopes),
        fields::read("sinks", &Args::sinks),
        fields::read("new_k", &Args::new_k),
        fields::read("new_v", &Args::new_v),
        fields::plain("batch_invariant", &Args::batch_invariant),
        fields::plain("workspace", &Args::workspace)
            .may_differ<Differs::in_calls>(&look::at_workspace<Args>),
        fields::plain("logits", &Args::logits),
        fields::plain("logits_values", &Args::logits_values)
            .may_differ<Differs::in_calls>(&look::at_logits_values),
    };
};

// A member that is added is named here, then listed above, and so compared.
static_assert([] {
    const auto& [q, k, v, out, mask, causal, scale, lse, qo_indptr, qo_indptr_host, kv_lens,
                 kv_indptr, req_to_token, req_pool_indices, block_table, kv_page_indptr,
                 kv_page_indices, last_page_len, max_kv_len, window_left, window_right, softcap,
                 alibi_slopes, sinks, new_k, new_v, batch_invariant, workspace, logits,
                 logits_values] = kNoCall<AttentionArgs>;
    return are_listed<AttentionArgs>(
        q, k, v, out, mask, causal, scale, lse, qo_indptr, qo_indptr_host, kv_lens, kv_indptr,
        req_to_token, req_pool_indices, block_table, kv_page_indptr, kv_page_indices, last_page_len,
        max_kv_len, window_left, window_right, softcap, alibi_slopes, sinks, new_k, new_v,
        batch_invariant, workspace, logits, logits_values);
}());

}  // namespace jitney
