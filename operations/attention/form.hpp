// Which of the forms of keys and values a call uses.
#pragma once

#include "jitney/attention.hpp"

namespace jitney {

enum class KvForm {
    dense,        // [batch, kv_len, kv_heads, head_dim]
    ragged,       // [total_kv, kv_heads, head_dim]
    token_table,  // pools, the rest too
    block_table,
    page_list,
};

inline KvForm kv_form(const AttentionArgs& args) noexcept {
    if (args.req_to_token) return KvForm::token_table;
    if (args.block_table) return KvForm::block_table;
    if (args.kv_page_indices) return KvForm::page_list;
    return args.kv_indptr ? KvForm::ragged : KvForm::dense;
}

inline bool is_paged(KvForm form) noexcept {
    return form != KvForm::dense && form != KvForm::ragged;
}

// Of a paged call whose pools have three or four dimensions.
inline std::int64_t page_size_of(const AttentionArgs& args) noexcept {
    return args.k.ndim == 3 ? 1 : args.k.shape[1];
}

}  // namespace jitney
