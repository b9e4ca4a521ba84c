// append_kv: writes new rows of K and V to where a cache keeps the last keys of each request, both
// in one launch; K rotated on the way where that is asked for, and q with it.
#pragma once

#include "attention/append_kv.h"
#include "attention/kv_rows.cuh"
#include "rotary/rotate.cuh"

namespace jitney {

template <class C>
struct AppendKv {
    struct Turning {
        static constexpr int format = C::format;
        static constexpr int pairs = C::pairs;
        static constexpr int style = C::rotary == 2 ? kHalfSplit : kInterleaved;
    };
    using T = Element<C::format>;
    using Rotate = Rotation<Turning>;
    static constexpr int kWidth = append_copy_width(C::pairs, sizeof(T));

    // A new row, as all threads of the block see it.
    struct Token {
        Request request;  // batch -1: the row belongs to none
        int row;          // among the new rows of its request
        long long position;
    };
    static_assert(sizeof(Token) <= append_shared_bytes(1));

    const AppendKvParams& params;

    JITNEY_DEVICE static Token* tokens() { return reinterpret_cast<Token*>(shared_memory()); }

    // The last request that begins at or before a packed row; requests without rows are passed by.
    JITNEY_DEVICE int packed_request_of(long long token) const {
        int low = 0;
        int high = params.cache.batch;  // begins behind the row, as far as it is known
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            if (params.cache.qo_indptr[middle] <= token) {
                low = middle;
            } else {
                high = middle;
            }
        }
        const bool inside =
            token >= params.cache.qo_indptr[low] && token < params.cache.qo_indptr[low + 1];
        return inside ? low : -1;
    }

    JITNEY_DEVICE Token find(long long token) const {
        Token found = {};
        found.request.batch = -1;
        if (token >= params.tokens) return found;
        int batch;
        if constexpr (C::queries == kPackedQueries) {
            batch = packed_request_of(token);
            if (batch < 0) return found;
        } else {
            batch = static_cast<int>(token / params.cache.q_len);
        }
        found.request = request_of<C::kv, C::queries>(params.cache, batch);
        found.row =
            static_cast<int>(C::queries == kPackedQueries
                                 ? token - found.request.first_query
                                 : token - static_cast<long long>(batch) * params.cache.q_len);
        if constexpr (C::rotary != 0) {
            const bool packed = C::queries == kPackedQueries;
            found.position = Rotate{params.rotary}.position_of(
                packed ? 0 : batch, packed ? token : found.row, key_of(found));
        }
        return found;
    }

    // The place of the row in the cache; negative where the request is shorter than its new rows.
    JITNEY_DEVICE static int key_of(const Token& token) {
        return token.request.query_offset() + token.row;
    }

    // Piece `item` of a head of K or V.
    template <bool is_k>
    JITNEY_DEVICE void append(const Token& token, int head, int item) const {
        const AttentionParams& p = params.cache;
        const AttentionStrides& strides = is_k ? p.new_k_strides : p.new_v_strides;
        const T* from = static_cast<const T*>(is_k ? p.new_k : p.new_v) +
                        query_offset_of(strides, token.request, {token.row, head, true});
        const KvHead cached = kv_head_of<C>(is_k ? p.k : p.v, is_k ? p.k_strides : p.v_strides,
                                            token.request, head, sizeof(T));
        T* to = reinterpret_cast<T*>(
            const_cast<char*>(kv_row<C>(p, token.request, cached, key_of(token))));
        if constexpr (is_k && C::rotary != 0) {
            Rotate{params.rotary}.piece(from, to, item, [&] { return token.position; });
        } else {
            Rotate::store(to + item * kWidth, Rotate::template load<kWidth>(from + item * kWidth));
        }
    }

    JITNEY_DEVICE void rotate_q(const Token& token, int head, int item) const {
        const RotaryTensor& q = params.rotary.tensors[0];
        const long long row = token.request.first_query + token.row;
        const T* x = static_cast<const T*>(q.x) + token.request.batch * q.x_batch + row * q.x_row +
                     head * q.x_head;
        T* out = static_cast<T*>(q.out) + token.request.batch * q.out_batch + row * q.out_row +
                 head * q.out_head;
        Rotate{params.rotary}.piece(x, out, item, [&] { return token.position; });
    }

    JITNEY_DEVICE void run() const {
        const int thread = static_cast<int>(threadIdx.x);
        for (int i = thread; i < params.tokens_a_block; i += kAppendThreads) {
            tokens()[i] = find(static_cast<long long>(blockIdx.x) * params.tokens_a_block + i);
        }
        __syncthreads();  // all tokens are known
        const int k_items = params.cache.kv_heads * params.k_items;
        const int kv_items = k_items + params.cache.kv_heads * params.v_items;
        const int items =
            kv_items + (C::rotary != 0 ? params.rotary.tensors[0].heads * params.q_items : 0);
        for (int i = thread; i < items * params.tokens_a_block; i += kAppendThreads) {
            const Token& token = tokens()[i / items];
            int item = i % items;
            if (token.request.batch < 0) continue;
            // A row without a place in the cache has no position of its own either.
            if (key_of(token) < 0 && (item < kv_items || params.rotary.positions == nullptr)) {
                continue;
            }
            if (item < k_items) {
                append<true>(token, item / params.k_items, item % params.k_items);
            } else if (item < kv_items) {
                item -= k_items;
                append<false>(token, item / params.v_items, item % params.v_items);
            } else if constexpr (C::rotary != 0) {
                item -= kv_items;
                rotate_q(token, item / params.q_items, item % params.q_items);
            }
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kAppendThreads)
    append_kv(const __grid_constant__ AppendKvParams params) {
    AppendKv<C>{params}.run();
}

}  // namespace jitney
