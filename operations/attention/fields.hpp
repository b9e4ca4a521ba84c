// The arguments of an attention call.
#pragma once

#include <algorithm>

#include "jitney/attention.hpp"
#include "jitney/jitney.h"
#include "operations/attention/cache_texts.hpp"
#include "operations/common_fields.hpp"

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
    using C = jitney_attention_args;
    static constexpr auto c_first = &C::causal;
    static constexpr const char* does = "softmax(scale * q k^T) v";
    // In host memory, what the index tensors hold.
    static void check_values(const Args& args);
    static constexpr bool appends(const Args& args) noexcept { return args.new_k.has_value(); }
    static constexpr FieldText heads{"[q_heads]", "fp32"};
    static constexpr FieldText new_rows{"[batch, new_len, kv_heads, head_dim]", fields::kFloating};
    static constexpr std::tuple all{
        fields::read("q", &Args::q)
            .told("queries",
                  {"qo_indptr: [total_q, q_heads, head_dim] | [batch, q_len, q_heads, head_dim]",
                   fields::kFloating},
                  &C::q),
        fields::updated("k", &Args::k)
            .only_where(&appends)
            .told("keys: of each request, of all of them (ragged), or a pool of pages",
                  fields::written_with("new_k", fields::kKeys), &C::k),
        fields::updated("v", &Args::v)
            .only_where(&appends)
            .told("values, likewise", fields::written_with("new_k", fields::kValues), &C::v),
        fields::written("out", &Args::out).told("the result", {.shape = "q", .like = "q"}, &C::out),
        fields::read("mask", &Args::mask)
            .told("true = keep; a size of 1 counts for all",
                  {"[batch, kv_len] | [batch, q_len, kv_len] | [batch, q_heads, q_len, kv_len]",
                   "bool"},
                  &C::mask),
        fields::plain("causal", &Args::causal)
            .told("query i sees the keys j <= i + (kv_len - q_len)", &C::causal),
        fields::plain("scale", &Args::scale)
            .told("factor of the scores, positive; 1 / sqrt(head_dim) where it is left out",
                  &C::scale),
        fields::written("lse", &Args::lse)
            .told("natural log of the sum of each row's exponentials",
                  {"qo_indptr: [total_q, q_heads] | [batch, q_heads, q_len]", "fp32"}, &C::lse),
        fields::read("qo_indptr", &Args::qo_indptr)
            .told("ragged queries: request b has the rows qo_indptr[b] to qo_indptr[b + 1] of q",
                  fields::kEnds, &C::qo_indptr),
        fields::plain("qo_indptr_host", &Args::qo_indptr_host)
            .may_differ<Differs::in_runs>(&look::at_host_indptr)
            .told("the numbers of qo_indptr, where they are known on the host", &C::qo_indptr_host,
                  &C::qo_indptr),
        fields::read("kv_lens", &Args::kv_lens)
            .told(fields::kKvLensMean, fields::kLengths, &C::kv_lens),
        fields::read("kv_indptr", &Args::kv_indptr)
            .told(fields::kKvIndptrMean, fields::kEnds, &C::kv_indptr),
        fields::read("req_to_token", &Args::req_to_token)
            .told(fields::kReqToTokenMean, fields::kTokenTable, &C::req_to_token),
        fields::read("req_pool_indices", &Args::req_pool_indices)
            .told(fields::kReqPoolIndicesMean, fields::kLengths, &C::req_pool_indices),
        fields::read("block_table", &Args::block_table)
            .told(fields::kBlockTableMean, fields::kBlockTable, &C::block_table),
        fields::read("kv_page_indptr", &Args::kv_page_indptr)
            .told(fields::kKvPageIndptrMean, fields::kEnds, &C::kv_page_indptr),
        fields::read("kv_page_indices", &Args::kv_page_indices)
            .may_differ<Differs::in_runs>(&look::at_page_list)
            .told(fields::kKvPageIndicesMean, fields::kPageList, &C::kv_page_indices),
        fields::read("last_page_len", &Args::last_page_len)
            .told(fields::kLastPageLenMean, fields::kLengths, &C::last_page_len),
        fields::plain("max_kv_len", &Args::max_kv_len)
            .may_differ<Differs::in_runs>(&look::at_max_kv_len)
            .told("about how many keys the longest request has, where tables are far wider",
                  &C::max_kv_len),
        fields::plain("window_left", &Args::window_left)
            .told("keys before its own place that a query sees; -1: all", &C::has_window,
                  &C::window_left),
        fields::plain("window_right", &Args::window_right)
            .told("keys after its own place that a query sees; -1: all", &C::has_window,
                  &C::window_right),
        fields::plain("softcap", &Args::softcap)
            .told("scores become softcap * tanh(score / softcap); positive", &C::softcap),
        fields::read("alibi_slopes", &Args::alibi_slopes)
            .told("slope * |p - key| is subtracted from a score", heads, &C::alibi_slopes),
        fields::read("sinks", &Args::sinks)
            .told("a logit without a value that joins the denominator", heads, &C::sinks),
        fields::read("new_k", &Args::new_k)
            .told("the last keys of each request, which its length counts already: attended to, "
                  "and written to their place in k",
                  new_rows, &C::new_k),
        fields::read("new_v", &Args::new_v).told("their values, written to v", new_rows, &C::new_v),
        fields::plain("batch_invariant", &Args::batch_invariant)
            .told("the result of a request does not depend, bit for bit, on who shares the batch",
                  &C::batch_invariant),
        fields::kWorkspaceField<Args, C>,
        fields::plain("logits", &Args::logits)
            .told("CUDA C++ that edits the scores, for tensors on a GPU", &C::logits),
        fields::plain("logits_values", &Args::logits_values)
            .may_differ<Differs::in_calls>(&look::at_logits_values)
            .told("the values of its parameters", &C::logits_values, &C::logits),
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "q-lens",
                      .says = Says::lengths,
                      .of = "batch of q",
                      .meaning = "Queries of each request, where --q is ragged and the host knows "
                                 "them: 7,1,512",
                      .gives = "qo_indptr"},
        ProblemOption{.name = "kv",
                      .says = Says::shape,
                      .of = "kv_indptr: [total_kv, kv_heads, head_dim] | [batch, kv_len, kv_heads, "
                            "head_dim]",
                      .meaning = "Shape of k and v (q's): as --q, with the heads of k",
                      .like = "q"},
        ProblemOption{.name = "page-size",
                      .says = Says::size,
                      .of = "page_size",
                      .meaning = "The keys lie in pages of N, which a block table names",
                      .gives = "block_table|kv_lens",
                      .without = "kv_indptr",
                      .otherwise = "divides the keys of each request: give --kv "
                                   "batch,length,heads,head_dim"},
        ProblemOption{.name = "lengths",
                      .says = Says::flag,
                      .meaning = "Each request has its own number of keys in a padded cache "
                                 "(kv_lens)",
                      .gives = "kv_lens",
                      .without = "kv_indptr|block_table",
                      .otherwise = "is of a padded cache: keys that are ragged or in pages have "
                                   "lengths anyway"},
        ProblemOption{.name = "alibi",
                      .says = Says::flag,
                      .meaning = "With a slope a head",
                      .gives = "alibi_slopes"},
        ProblemOption{
            .name = "sinks", .says = Says::flag, .meaning = "With a sink a head", .gives = "sinks"},
        ProblemOption{.name = "append",
                      .says = Says::size,
                      .of = "new_len",
                      .meaning = "N new keys a request come with the call, and are written to its "
                                 "cache",
                      .gives = "new_k|new_v"},
    };
    static constexpr std::array sizes{
        ProblemSize{.name = "max_pages", .otherwise = "kv_len / page_size"},
        ProblemSize{.name = "pages", .otherwise = "batch * max_pages"},
        ProblemSize{.name = "new_len",
                    .called = "--append",
                    .at_most = "kv_len",
                    .because = "keys a request, which --kv counts with the new ones"},
    };
};

static_assert(lists_all_members<AttentionArgs>());
static_assert(covers_c_struct<CallFields<AttentionArgs>, jitney_attention_args>());

}  // namespace jitney
