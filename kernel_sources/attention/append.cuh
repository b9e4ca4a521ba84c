// Writing new rows of K and V to where a cache keeps the last keys of a request.
#pragma once

#include "attention/kv_rows.cuh"
#include "common/vector.cuh"

namespace jitney {

// The whole block copies the new rows of one KV head, `vector` bytes at a time, to which the rows
// are aligned.
template <class C, int element_bytes, int vector>
JITNEY_DEVICE void append_rows(const AttentionParams& params, const Request& request, int kv_head) {
    constexpr int pieces = C::head_dim * element_bytes / vector;
    const int first_new = request.kv_len - params.new_len;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * params.new_len * pieces;
         i += static_cast<int>(blockDim.x)) {
        const bool is_k = i < params.new_len * pieces;
        const int row = i / pieces - (is_k ? 0 : params.new_len);
        const int offset = i % pieces * vector;
        if (first_new + row < 0) continue;
        const AttentionStrides& strides = is_k ? params.new_k_strides : params.new_v_strides;
        const char* from = static_cast<const char*>(is_k ? params.new_k : params.new_v) +
                           offset_of(strides, request.batch, row, kv_head) * element_bytes;
        const KvHead head =
            kv_head_of<C>(is_k ? params.k : params.v, is_k ? params.k_strides : params.v_strides,
                          request, kv_head, element_bytes);
        char* to = const_cast<char*>(kv_row<C>(params, request, head, first_new + row));
        store_vector(to + offset, load_vector<vector>(from + offset));
    }
}

}  // namespace jitney
