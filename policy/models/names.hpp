// The names under which configurations have a quantity.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/models/fields.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

inline constexpr int kMaxHeads = 65536;
inline constexpr int kMaxSize = 1 << 30;

using Names = std::span<const std::string_view>;

inline constexpr std::array<std::string_view, 8> kHeadsNames = {
    "num_attention_heads", "n_head",          "n_heads",     "num_heads",
    "num_query_heads",     "attention_heads", "num_q_heads", "decoder_attention_heads"};
inline constexpr std::array<std::string_view, 8> kKvHeadsNames = {
    "num_key_value_heads",   "num_kv_heads",         "n_head_kv",       "n_kv_heads", "kv_n_heads",
    "multi_query_group_num", "num_attention_groups", "num_query_groups"};
inline constexpr std::array<std::string_view, 10> kHeadDimNames = {"head_dim",
                                                                   "attention_head_dim",
                                                                   "attention_head_size",
                                                                   "kv_channels",
                                                                   "d_kv",
                                                                   "d_head",
                                                                   "dim_head",
                                                                   "head_size",
                                                                   "size_per_head",
                                                                   "hidden_size_per_head"};
inline constexpr std::array<std::string_view, 7> kHiddenNames = {
    "hidden_size", "n_embd", "d_model", "n_embed", "model_dim", "dim", "emb_dim"};
inline constexpr std::array<std::string_view, 7> kLayersNames = {
    "num_hidden_layers",      "n_layer", "n_layers", "num_layers", "decoder_layers",
    "num_transformer_layers", "layers"};

// "num_attention_heads (or n_head, n_heads, ...)", as a sentence names a quantity.
std::string told(Names names);

// The value of the first name that the file has: a number, or one a layer. Two of the names that
// disagree are refused.
std::optional<std::vector<int>> values_of(const Fields& config, Names names, int maximum);
std::optional<int> value_of(const Fields& config, Names names, int maximum);
// One of the names is there and null.
bool says_null(const Fields& config, Names names);

// 0 where neither the file nor the type says.
int layer_count(const Fields& config, const ModelType& type);

}  // namespace jitney::policy
