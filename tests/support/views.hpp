// The tensors of a call by the names of its fields.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "jitney/tensor.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

using Views = std::map<std::string, Tensor>;

// All of them, as if they lay on `device`.
inline Views views_of(std::map<std::string, HostTensor>& tensors, const Device& device) {
    Views views;
    for (auto& [name, tensor] : tensors)
        views.emplace(name, tensor.view(device));
    return views;
}

inline std::optional<Tensor> find_view(const Views& views, const char* name) {
    const auto at = views.find(name);
    return at == views.end() ? std::nullopt : std::optional(at->second);
}

// Where the keys and values of each request stand: the fields that attention and append_kv share,
// public or the reference's.
template <class Args>
void set_cache(Args& args, const Views& views) {
    args.k = views.at("k");
    args.v = views.at("v");
    args.kv_lens = find_view(views, "kv_lens");
    args.kv_indptr = find_view(views, "kv_indptr");
    args.req_to_token = find_view(views, "req_to_token");
    args.req_pool_indices = find_view(views, "req_pool_indices");
    args.block_table = find_view(views, "block_table");
    args.kv_page_indptr = find_view(views, "kv_page_indptr");
    args.kv_page_indices = find_view(views, "kv_page_indices");
    args.last_page_len = find_view(views, "last_page_len");
}

}  // namespace jitney::tests
