#include "operations/attention/reference.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "operations/attention/reference_core.hpp"
#include "operations/attention/reference_rules.hpp"
#include "operations/attention/reference_sources.hpp"
#include "operations/reference/check.hpp"

namespace jitney::reference {

namespace {

bool is_paged(const Attention& call) {
    return call.req_to_token || call.block_table || call.kv_page_indices;
}

std::int64_t size_from_end(const Tensor& tensor, int dim) {
    return tensor.shape[static_cast<std::size_t>(tensor.ndim - dim)];
}

void check_queries(const Attention& call) {
    const int dims = call.qo_indptr ? 3 : 4;
    require_heads(call.q, "q", dims);
    require_heads(call.out, "out", dims);
    const auto& q = call.q.shape;
    const std::int64_t value_dim = size_from_end(call.v, 1);
    if (!call.qo_indptr) {
        require_shape(call.out, "out", {q[0], q[1], q[2], value_dim});
        if (call.lse) require_shape(*call.lse, "lse", {q[0], q[2], q[1]});
    } else {
        require(call.qo_indptr->ndim == 1 && call.qo_indptr->shape[0] > 0,
                "qo_indptr must have one dimension, of batch + 1");
        require_shape(call.out, "out", {q[0], q[1], value_dim});
        if (call.lse) require_shape(*call.lse, "lse", {q[0], q[1]});
    }
    if (call.lse) {
        require(call.lse->dtype == DType::fp32, "lse must be fp32");
        require_host(*call.lse, "lse");
    }
}

void check_keys(const Attention& call) {
    const bool paged = is_paged(call);
    const int dims = paged ? call.k.ndim : (call.kv_indptr ? 3 : 4);
    require(dims == 3 || dims == 4, "k has the shape " + text_of_shape(call.k) +
                                        "; a pool must be [pages, page_size, kv_heads, head_dim]");
    require_heads(call.k, "k", dims);
    require_heads(call.v, "v", dims);
    const auto& k = call.k.shape;
    const std::int64_t head_dim = size_from_end(call.q, 1);
    const std::int64_t value_dim = size_from_end(call.v, 1);
    if (dims == 3) {
        require_shape(call.k, "k", {k[0], k[1], head_dim});
        require_shape(call.v, "v", {k[0], k[1], value_dim});
    } else {
        const std::int64_t batch =
            paged ? k[0] : (call.qo_indptr ? call.qo_indptr->shape[0] - 1 : call.q.shape[0]);
        require_shape(call.k, "k", {batch, k[1], k[2], head_dim});
        require_shape(call.v, "v", {batch, k[1], k[2], value_dim});
    }
}

void check_heads(const Attention& call) {
    const std::int64_t q_heads = size_from_end(call.q, 2);
    const std::int64_t kv_heads = size_from_end(call.k, 2);
    require(kv_heads > 0 ? q_heads % kv_heads == 0 : q_heads == 0,
            "q has " + std::to_string(q_heads) + " heads and k has " + std::to_string(kv_heads) +
                "; the heads of k must divide those of q");
    for (const auto& [tensor, name] :
         {std::pair{&call.alibi_slopes, "alibi_slopes"}, std::pair{&call.sinks, "sinks"}}) {
        if (!*tensor) continue;
        require_host(**tensor, name);
        require((*tensor)->dtype == DType::fp32, std::string(name) + " must be fp32");
        require_shape(**tensor, name, {q_heads});
    }
}

void check_new_rows(const Attention& call, std::int64_t requests) {
    require(call.new_k.has_value() == call.new_v.has_value(), "new_k and new_v come together");
    if (!call.new_k) return;
    require_heads(*call.new_k, "new_k", 4);
    require_heads(*call.new_v, "new_v", 4);
    const std::int64_t length = call.new_k->shape[1];
    const std::int64_t heads = size_from_end(call.k, 2);
    require_shape(*call.new_k, "new_k", {requests, length, heads, size_from_end(call.k, 1)});
    require_shape(*call.new_v, "new_v", {requests, length, heads, size_from_end(call.v, 1)});
}

CallRules rules_of(const Attention& call, const CallQueries& queries, const CallKeys& keys) {
    CallRules rules;
    rules.causal = call.causal;
    rules.window_left = call.window_left;
    rules.window_right = call.window_right;
    rules.softcap = call.softcap;
    rules.alibi_slopes = call.alibi_slopes;
    rules.sinks = call.sinks;
    if (!call.mask) return rules;
    std::int64_t q_len = call.qo_indptr ? 0 : call.q.shape[1];
    const bool one_kv_len = !is_paged(call) && !call.kv_indptr;
    std::int64_t kv_len = one_kv_len ? call.k.shape[1] : 0;
    for (std::int64_t i = 0; i < queries.requests(); ++i) {
        q_len = std::max(q_len, queries.length(i));
        kv_len = std::max(kv_len, keys.length(i));
    }
    const bool exact = one_kv_len && !call.qo_indptr;
    rules.mask.emplace(*call.mask, queries.requests(), queries.heads(), q_len, kv_len,
                       exact ? Mask::Fit::exact : Mask::Fit::at_least);
    return rules;
}

// The first key of a request that its queries see, or that is appended.
std::int64_t first_key(const Attention& call, const CallQueries& queries, const CallKeys& keys,
                       std::int64_t request) {
    const std::int64_t length = keys.length(request);
    std::int64_t first = length;
    if (queries.length(request) > 0) {
        // Windows move forward with the queries.
        first = call.window_left < 0 ? 0 : length - queries.length(request) - call.window_left;
    }
    if (call.new_k) first = std::min(first, length - call.new_k->shape[1]);
    return std::max<std::int64_t>(first, 0);
}

// A call that was found to be in order.
struct Prepared {
    explicit Prepared(const Attention& call);

    CallQueries queries;
    CallKeys keys;
    CallRules rules;
};

// The checks of shapes come before the members look at values.
const Attention& with_shapes_checked(const Attention& call) {
    check_queries(call);
    const std::int64_t head_dim = size_from_end(call.q, 1);
    require(head_dim > 0, "head_dim is " + std::to_string(head_dim) + "; it must be at least 1");
    check_keys(call);
    check_heads(call);
    return call;
}

Prepared::Prepared(const Attention& call)
    : queries(with_shapes_checked(call)),
      keys(call, queries.requests()),
      rules((check_new_rows(call, queries.requests()), rules_of(call, queries, keys))) {
    for (std::int64_t i = 0; i < queries.requests(); ++i)
        keys.check_pages(call, i, first_key(call, queries, keys, i));
    check_appended_rows(keys, appended_rows(call, keys, queries.requests()));
}

}  // namespace

void check(const Attention& call) {
    const Prepared prepared(call);
}

void attention(const Attention& call) {
    const Prepared prepared(call);
    append(call, prepared.keys, prepared.queries.requests());
    const double scale =
        call.scale.value_or(1.0 / std::sqrt(static_cast<double>(size_from_end(call.q, 1))));
    attend(prepared.queries, prepared.keys, prepared.rules, scale);
}

}  // namespace jitney::reference
