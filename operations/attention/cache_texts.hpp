// What the fields that say where keys and values stand mean: the same in each operation that has
// them.
#pragma once

#include "operations/field_text.hpp"

namespace jitney::fields {

inline constexpr const char* kPool =
    "block_table: [pages, page_size, kv_heads, head_dim] | kv_page_indices: [pages, page_size, "
    "kv_heads, head_dim] | req_to_token: [slots, kv_heads, head_dim] | kv_indptr: [total_kv, "
    "kv_heads, head_dim] | [batch, kv_len, kv_heads, head_dim]";
inline constexpr FieldText kKeys{.shape = kPool,
                                 .dtypes = kFloating,
                                 .file = "k_pool with req_to_token|block_table|kv_page_indices"};
inline constexpr FieldText kValues{.shape = kPool,
                                   .dtypes = kFloating,
                                   .file = "v_pool with req_to_token|block_table|kv_page_indices"};
inline constexpr FieldText kLengths{"[batch]", "int32"};
inline constexpr FieldText kEnds{"[batch + 1]", "int32"};
inline constexpr FieldText kTokenTable{"[requests, max_len]", "int32"};
inline constexpr FieldText kBlockTable{"[batch, max_pages]", "int32"};
inline constexpr FieldText kPageList{"[any]", "int32"};

inline constexpr const char* kKvLensMean =
    "how many keys each request has, of a padded cache or in pages";
inline constexpr const char* kKvIndptrMean =
    "the same as differences; without pages also the first row of each request in k and v";
inline constexpr const char* kReqToTokenMean = "token table: the slots of each request's tokens";
inline constexpr const char* kReqPoolIndicesMean = "which row of req_to_token each request has";
inline constexpr const char* kBlockTableMean = "block table: the pages of each request";
inline constexpr const char* kKvPageIndptrMean =
    "page list: where the pages of each request begin in kv_page_indices";
inline constexpr const char* kKvPageIndicesMean = "page list: the pages";
inline constexpr const char* kLastPageLenMean =
    "page list: how many keys the last page of each request holds";

}  // namespace jitney::fields
