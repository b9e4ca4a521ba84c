#include "api/reference_call.hpp"

#include "jitney/error.hpp"

namespace jitney {

reference::Attention reference_call(const AttentionArgs& args) {
    if (args.logits) {
        throw Error(ErrorCode::unsupported,
                    "the tensors are in host memory, and the reference backend can't run the CUDA "
                    "text of a logits function: copy them to a GPU, or leave logits out");
    }
    reference::Attention call;
    call.q = args.q;
    call.k = args.k;
    call.v = args.v;
    call.out = args.out;
    call.mask = args.mask;
    call.lse = args.lse;
    call.causal = args.causal;
    if (args.scale) call.scale = static_cast<double>(*args.scale);
    call.qo_indptr = args.qo_indptr;
    call.kv_indptr = args.kv_indptr;
    call.kv_lens = args.kv_lens;
    call.req_to_token = args.req_to_token;
    call.req_pool_indices = args.req_pool_indices;
    call.block_table = args.block_table;
    call.kv_page_indptr = args.kv_page_indptr;
    call.kv_page_indices = args.kv_page_indices;
    call.last_page_len = args.last_page_len;
    call.window_left = args.window_left;
    call.window_right = args.window_right;
    if (args.softcap) call.softcap = static_cast<double>(*args.softcap);
    call.alibi_slopes = args.alibi_slopes;
    call.sinks = args.sinks;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    return call;
}

}  // namespace jitney
