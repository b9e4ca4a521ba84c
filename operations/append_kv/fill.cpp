#include "operations/append_kv/fill.hpp"

#include "operations/append_kv/form.hpp"
#include "operations/attention/cache_addresses.hpp"
#include "operations/attention/fill.hpp"
#include "operations/rotary/fill.hpp"

namespace jitney {

AppendKvParams form_params(const AppendKvArgs& args, const policy::AppendKvProblem& problem,
                           const policy::AppendKvChoice& choice) noexcept {
    policy::AttentionProblem cached;
    cached.batch = problem.batch;
    cached.q_len = problem.packed ? 0 : static_cast<int>(args.new_k.shape[1]);
    cached.kv_len = args.k.ndim == 4 ? static_cast<int>(args.k.shape[1]) : 0;
    cached.q_heads = cached.kv_heads = problem.kv_heads;
    cached.head_dim = problem.head_dim;
    cached.packed = problem.packed;
    cached.paged = problem.paged;
    policy::AttentionChoice each_head;
    each_head.group = 1;
    AppendKvParams params{};
    params.cache = form_params(as_attention(args), cached, each_head);
    params.cache.new_k_strides = params.cache.q_strides;
    params.cache.new_v_strides = params.cache.out_strides;
    if (problem.rotary != policy::AppendRotary::none) {
        policy::RotaryProblem rotary;
        rotary.rotary_dim = problem.rotary_dim;
        rotary.head_dim = problem.head_dim;
        params.rotary = form_params(as_rotary(args), rotary, {});
        params.rotary.tensors[0].heads = problem.q_heads;
    }
    params.head_dim = problem.head_dim;
    params.k_items = choice.k_items;
    params.v_items = choice.v_items;
    params.q_items = choice.q_items;
    params.tokens_a_block = choice.tokens_a_block;
    params.tokens = problem.tokens;
    return params;
}

void set_addresses(AppendKvParams& params, const AppendKvArgs& args) noexcept {
    set_cache_addresses(params.cache, args);
    params.cache.q = args.new_k.data;
    params.cache.out = args.new_v.data;
    params.cache.qo_indptr = data_of<const int>(args.new_indptr);
    params.cache.new_k = args.new_k.data;
    params.cache.new_v = args.new_v.data;
    if (args.cos) set_addresses(params.rotary, as_rotary(args));
}

}  // namespace jitney
