// The addresses of the keys and values of each request: calls of attention and appends to
// a cache have these fields in common.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"
#include "kernel_sources/attention/params.h"

namespace jitney {

template <class T>
T* data_of(const std::optional<Tensor>& tensor) noexcept {
    return tensor ? static_cast<T*>(tensor->data) : nullptr;
}

template <class Args>
void set_cache_addresses(AttentionParams& params, const Args& args) noexcept {
    params.k = args.k.data;
    params.v = args.v.data;
    params.kv_indptr = data_of<const int>(args.kv_indptr);
    params.kv_lens = data_of<const int>(args.kv_lens);
    params.page_table = data_of<const int>(args.req_to_token  ? args.req_to_token
                                           : args.block_table ? args.block_table
                                                              : args.kv_page_indices);
    params.request_rows = data_of<const int>(args.req_pool_indices);
    params.kv_page_indptr = data_of<const int>(args.kv_page_indptr);
    params.last_page_len = data_of<const int>(args.last_page_len);
}

}  // namespace jitney
