#include "operations/reference_call.hpp"

#include "jitney/error.hpp"
#include "operations/reference/cache_fields.hpp"

namespace jitney {
namespace {

reference::RotaryStyle reference_style(RotaryStyle style) {
    return style == RotaryStyle::interleaved ? reference::RotaryStyle::interleaved
                                             : reference::RotaryStyle::half_split;
}

}  // namespace

reference::Attention reference_call(const AttentionArgs& args) {
    if (args.logits) {
        throw Error(ErrorCode::unsupported,
                    "the tensors are in host memory, and the reference backend can't run the CUDA "
                    "text of a logits function: copy them to a GPU, or leave logits out");
    }
    reference::Attention call;
    call.q = args.q;
    reference::copy_cache(call, args);
    call.out = args.out;
    call.mask = args.mask;
    call.lse = args.lse;
    call.causal = args.causal;
    if (args.scale) call.scale = static_cast<double>(*args.scale);
    call.qo_indptr = args.qo_indptr;
    call.window_left = args.window_left;
    call.window_right = args.window_right;
    if (args.softcap) call.softcap = static_cast<double>(*args.softcap);
    call.alibi_slopes = args.alibi_slopes;
    call.sinks = args.sinks;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    return call;
}

reference::Rotary reference_call(const RotaryArgs& args) {
    reference::Rotary call;
    call.q = args.q;
    call.q_out = args.q_out;
    call.k = args.k;
    call.k_out = args.k_out;
    call.cos = args.cos;
    call.sin = args.sin;
    call.positions = args.positions;
    call.style = reference_style(args.style);
    return call;
}

reference::AppendKv reference_call(const AppendKvArgs& args) {
    reference::AppendKv call;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    call.new_indptr = args.new_indptr;
    reference::copy_cache(call, args);
    call.cos = args.cos;
    call.sin = args.sin;
    call.positions = args.positions;
    call.style = reference_style(args.style);
    call.q = args.q;
    call.q_out = args.q_out;
    return call;
}

}  // namespace jitney
