// The cache of an append as attention sees it.
#pragma once

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "operations/reference/cache_fields.hpp"

namespace jitney {

// The call of attention to the same cache whose queries lie as new_k does, and whose results as
// new_v does.
inline AttentionArgs as_attention(const AppendKvArgs& args) noexcept {
    AttentionArgs call;
    call.q = args.new_k;
    call.out = args.new_v;
    reference::copy_cache(call, args);
    call.qo_indptr = args.new_indptr;
    return call;
}

// The rotary call over the tokens of the append, q alone; for an append with tables. Ragged rows
// are those of a batch of one.
inline RotaryArgs as_rotary(const AppendKvArgs& args) noexcept {
    const auto batched = [&args](Tensor tensor) {
        if (!args.new_indptr || tensor.ndim != 3) return tensor;
        for (std::size_t i = 3; i > 0; --i) {
            tensor.shape[i] = tensor.shape[i - 1];
            tensor.strides[i] = tensor.strides[i - 1];
        }
        tensor.ndim = 4;
        tensor.shape[0] = 1;
        tensor.strides[0] = 0;
        return tensor;
    };
    RotaryArgs call;
    call.q = batched(args.q ? *args.q : args.new_k);
    call.q_out = batched(args.q ? *args.q_out : args.new_k);
    call.cos = *args.cos;
    call.sin = *args.sin;
    call.positions = args.positions;
    call.style = args.style;
    return call;
}

}  // namespace jitney
