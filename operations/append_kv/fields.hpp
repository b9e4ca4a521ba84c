// The arguments of an append to a cache.
#pragma once

#include "jitney/append_kv.hpp"
#include "operations/call_fields.hpp"

namespace jitney {

template <>
struct CallFields<AppendKvArgs> {
    using Args = AppendKvArgs;
    static constexpr std::tuple all{
        fields::read("new_k", &Args::new_k),
        fields::read("new_v", &Args::new_v),
        fields::read("new_indptr", &Args::new_indptr),
        fields::updated("k", &Args::k),
        fields::updated("v", &Args::v),
        fields::read("kv_lens", &Args::kv_lens),
        fields::read("kv_indptr", &Args::kv_indptr),
        fields::read("req_to_token", &Args::req_to_token),
        fields::read("req_pool_indices", &Args::req_pool_indices),
        fields::read("block_table", &Args::block_table),
        fields::read("kv_page_indptr", &Args::kv_page_indptr),
        fields::read("kv_page_indices", &Args::kv_page_indices),
        fields::read("last_page_len", &Args::last_page_len),
        fields::read("cos", &Args::cos),
        fields::read("sin", &Args::sin),
        fields::read("positions", &Args::positions),
        fields::plain("style", &Args::style),
        fields::source("q", &Args::q),
        fields::result("q_out", &Args::q_out, "q", &Args::q),
    };
};

// A member that is added is named here, then listed above.
static_assert([] {
    const auto& [new_k, new_v, new_indptr, k, v, kv_lens, kv_indptr, req_to_token, req_pool_indices,
                 block_table, kv_page_indptr, kv_page_indices, last_page_len, cos, sin, positions,
                 style, q, q_out] = kNoCall<AppendKvArgs>;
    return are_listed<AppendKvArgs>(new_k, new_v, new_indptr, k, v, kv_lens, kv_indptr,
                                    req_to_token, req_pool_indices, block_table, kv_page_indptr,
                                    kv_page_indices, last_page_len, cos, sin, positions, style, q,
                                    q_out);
}());

}  // namespace jitney
