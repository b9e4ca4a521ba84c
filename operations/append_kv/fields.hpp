// The arguments of an append to a cache.
#pragma once

#include "jitney/append_kv.hpp"
#include "operations/attention/cache_texts.hpp"
#include "operations/rotary/fields.hpp"

namespace jitney {

template <>
struct CallFields<AppendKvArgs> {
    using Args = AppendKvArgs;
    using C = jitney_append_kv_args;
    static constexpr auto c_first = &C::reserved;
    static constexpr const char* does =
        "Appends new keys and values to a cache, rotated on the way or not";
    static constexpr FieldText rows{
        "new_indptr: [total_new, kv_heads, head_dim] | [batch, new_len, kv_heads, head_dim]",
        fields::kFloating};
    static constexpr std::tuple all{
        fields::read("new_k", &Args::new_k)
            .told("the last keys of each request, which its length counts already", rows,
                  &C::new_k),
        fields::read("new_v", &Args::new_v).told("their values", rows, &C::new_v),
        fields::read("new_indptr", &Args::new_indptr)
            .told("ragged rows: request b has those from new_indptr[b] to new_indptr[b + 1]",
                  fields::kEnds, &C::new_indptr),
        fields::updated("k", &Args::k)
            .told("the keys of the cache: padded, ragged or a pool of pages", fields::kKeys, &C::k),
        fields::updated("v", &Args::v).told("its values", fields::kValues, &C::v),
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
            .told(fields::kKvPageIndicesMean, fields::kPageList, &C::kv_page_indices),
        fields::read("last_page_len", &Args::last_page_len)
            .told(fields::kLastPageLenMean, fields::kLengths, &C::last_page_len),
        fields::read("cos", &Args::cos)
            .told("cosines, with which the keys are rotated as they are written",
                  fields::kRotaryTable, &C::cos),
        fields::read("sin", &Args::sin).told("sines, with cos", fields::kRotaryTable, &C::sin),
        fields::read("positions", &Args::positions)
            .told("the row of cos and sin for each new key; its place in its request where it is "
                  "left out",
                  {"[batch, new_len] | [new_len] | [total_new]", "int32|int64"}, &C::positions),
        fields::kStyleField<Args, C>,
        fields::source("q", &Args::q)
            .told(
                "queries of the same tokens, rotated in the same launch",
                {"new_indptr: [total_new, q_heads, head_dim] | [batch, new_len, q_heads, head_dim]",
                 fields::kFloating},
                &C::q),
        fields::result("q_out", &Args::q_out, "q", &Args::q)
            .told("q rotated: q itself, in place, or memory apart from it",
                  {.shape = "q", .like = "q", .when = "q"}, &C::q_out),
    };
    using Says = ProblemOption::Says;
    static constexpr std::array problem{
        ProblemOption{.name = "new",
                      .says = Says::shape,
                      .of = rows.shape,
                      .meaning =
                          "Shape of the new keys: batch,new_len,kv_heads,head_dim, or ragged "
                          "total_new,kv_heads,head_dim",
                      .gives = "kv_lens"},
        ProblemOption{.name = "requests",
                      .says = Says::size,
                      .of = "batch",
                      .meaning = "How many requests ragged keys are of (as many as keys)",
                      .with = "new_indptr",
                      .otherwise = "is of ragged keys: the batch of --new says how many"},
        ProblemOption{.name = "page-size",
                      .says = Says::size,
                      .of = "page_size",
                      .meaning = "The cache lies in pages of so many keys (it is padded)",
                      .gives = "block_table"},
        ProblemOption{.name = "style",
                      .says = Says::word,
                      .of = "style",
                      .meaning = "The keys are rotated on the way, and which elements are turned "
                                 "together (none)",
                      .gives = "cos|sin"},
        fields::with("style", "is of a --style, which is missing", fields::kRotaryDimOption),
        fields::with("style", "is of a --style, which is missing",
                     {.name = "q-heads",
                      .says = Says::size,
                      .of = "q_heads",
                      .meaning = "The queries of the same tokens, of so many heads, are rotated, "
                                 "too",
                      .gives = "q"}),
    };
    static constexpr std::array sizes{
        ProblemSize{.name = "batch", .otherwise = "total_new"},
        ProblemSize{.name = "kv_len", .otherwise = "new_len | total_new"},
        ProblemSize{.name = "pages", .otherwise = "1"},
        ProblemSize{.name = "max_pages", .otherwise = "1"},
        ProblemSize{.name = "table_len", .otherwise = "1"},
        fields::kRotaryDim,
    };
};

static_assert(lists_all_members<AppendKvArgs>());
static_assert(covers_c_struct<CallFields<AppendKvArgs>, jitney_append_kv_args>());

}  // namespace jitney
