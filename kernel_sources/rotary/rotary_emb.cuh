// rotary_emb: rotary position embedding of q and k, both tensors in one launch, in place or not.
//
// A thread has one piece of a head, and takes it from several heads of a token: their angles are
// the same, and are read once.
#pragma once

#include "common/grid_dependency.cuh"
#include "rotary/rotate.cuh"

namespace jitney {

template <class C>
struct RotaryEmb {
    using T = Element<C::format>;
    using Rotate = Rotation<C>;
    static constexpr int kHeads =
        rotary_heads_held(2 * Rotate::kPairs * static_cast<int>(sizeof(T)));

    const RotaryParams& params;

    struct Token {
        long long batch;
        long long row;
    };
    JITNEY_DEVICE Token token_at(long long token) const {
        // 64 bits are divided by many instructions, and are hardly ever needed.
        if (params.tokens <= 0xffffffffll) {
            const unsigned batch =
                static_cast<unsigned>(token) / static_cast<unsigned>(params.length);
            return {batch, token - static_cast<long long>(batch) * params.length};
        }
        const long long batch = token / params.length;
        return {batch, token - batch * params.length};
    }

    struct Head {
        const T* x;
        T* out;
    };
    JITNEY_DEVICE Head head_at(const Token& token, int head) const {
        const bool second = head >= params.tensors[0].heads;
        const RotaryTensor& tensor = params.tensors[second ? 1 : 0];
        if (second) head -= params.tensors[0].heads;
        return {static_cast<const T*>(tensor.x) + token.batch * tensor.x_batch +
                    token.row * tensor.x_row + head * tensor.x_head,
                static_cast<T*>(tensor.out) + token.batch * tensor.out_batch +
                    token.row * tensor.out_row + head * tensor.out_head};
    }

    // The piece `item` of heads first, first + step, ...
    JITNEY_DEVICE void do_piece(const Token& token, int item, int first) const {
        const Rotate rotation{params};
        const int step = params.heads_at_once;
        const int heads = params.tensors[0].heads + params.tensors[1].heads;
        if (item >= rotation.rotated_pieces()) {
            for (int head = first; head < heads; head += step) {
                const Head at = head_at(token, head);
                rotation.copy_piece(at.x, at.out, item);
            }
            return;
        }
        const int pair = item * Rotate::kPairs;
        // The angles are asked for behind what the token brings, which is on its way meanwhile.
        const long long position = rotation.position_of(token.batch, token.row, token.row);
        typename Rotate::Angles angles;
        for (int head = first; head < heads; head += kHeads * step) {
            typename Rotate::Held x[kHeads];
#pragma unroll
            for (int i = 0; i < kHeads; ++i) {
                if (head + i * step < heads)
                    x[i] = rotation.take(head_at(token, head + i * step).x, pair);
            }
            if (head == first) angles = rotation.angles_at(position, pair);
#pragma unroll
            for (int i = 0; i < kHeads; ++i) {
                if (head + i * step < heads) {
                    rotation.put_rotated(head_at(token, head + i * step).out, pair, x[i], angles);
                }
            }
        }
    }

    JITNEY_DEVICE void run() const {
        wait_for_previous_grid();
        const int work = params.threads_a_token * params.tokens_a_block;
        for (int i = static_cast<int>(threadIdx.x); i < work; i += kRotaryThreads) {
            const int block_token = i / params.threads_a_token;
            const int thread = i - block_token * params.threads_a_token;
            const long long token =
                static_cast<long long>(blockIdx.x) * params.tokens_a_block + block_token;
            if (token >= params.tokens) return;
            const int first = thread / params.items;
            do_piece(token_at(token), thread - first * params.items, first);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kRotaryThreads)
    rotary_emb(const __grid_constant__ RotaryParams params) {
    RotaryEmb<C>{params}.run();
}

}  // namespace jitney
