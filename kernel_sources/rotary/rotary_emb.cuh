// rotary_emb: rotary position embedding of q and k, both tensors in one launch, in place or not.
#pragma once

#include "rotary/rotate.cuh"

namespace jitney {

template <class C>
__global__ void __launch_bounds__(kRotaryThreads)
    rotary_emb(const __grid_constant__ RotaryParams params) {
    using T = Element<C::format>;
    const Rotation<C> rotation{params};
    const int items_a_head = params.items / (params.tensors[0].heads + params.tensors[1].heads);
    const int work = params.items * params.tokens_a_block;
    for (int i = static_cast<int>(threadIdx.x); i < work; i += kRotaryThreads) {
        const int block_token = i / params.items;
        const long long token =
            static_cast<long long>(blockIdx.x) * params.tokens_a_block + block_token;
        if (token >= params.tokens) return;
        const long long batch = token / params.length;
        const long long row = token - batch * params.length;
        int head = (i - block_token * params.items) / items_a_head;
        const int item = (i - block_token * params.items) - head * items_a_head;
        const bool second = head >= params.tensors[0].heads;
        const RotaryTensor& tensor = params.tensors[second ? 1 : 0];
        if (second) head -= params.tensors[0].heads;
        const T* x = static_cast<const T*>(tensor.x) + batch * tensor.x_batch + row * tensor.x_row +
                     head * tensor.x_head;
        T* out = static_cast<T*>(tensor.out) + batch * tensor.out_batch + row * tensor.out_row +
                 head * tensor.out_head;
        rotation.piece(x, out, item, [&] { return rotation.position_of(batch, row, row); });
    }
}

}  // namespace jitney
