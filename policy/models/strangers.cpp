#include "policy/models/strangers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/models/names.hpp"

namespace jitney::policy {
namespace {

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

constexpr auto kSuspicious = std::to_array<std::string_view>(
    {"head_dim", "partial_rotary_factors", "heads", "n_head", "window", "chunk_size", "head_size",
     "qk_", "kv_dim", "kv_size", "blocksparse", "block_sparse", "sparse_att", "dense_attention",
     "kv_group", "query_group"});

// Fields of parts that have nothing to do with attention over keys and values, or that are passed
// over.
constexpr auto kOtherParts = std::to_array<std::string_view>({"mamba",
                                                              "ssm",
                                                              "linear_",
                                                              "conv",
                                                              "vision",
                                                              "image",
                                                              "video",
                                                              "audio",
                                                              "index",
                                                              "mtp",
                                                              "vit_",
                                                              "time_",
                                                              "router",
                                                              "expert",
                                                              "moe",
                                                              "conf_",
                                                              "feed_forward",
                                                              "pooler",
                                                              "classifier",
                                                              "guided",
                                                              "prune",
                                                              "ngram",
                                                              "attention_context"});

// Names that are read, or make no difference to a kernel.
constexpr auto kUnderstood = std::to_array<std::string_view>({
    "num_attention_heads_per_layer",
    "num_key_value_heads_per_layer",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_num_attention_heads",
    "decoder_num_attention_heads",
    "encoder_num_key_value_heads",
    "decoder_num_key_value_heads",
    "num_encoder_attention_heads",
    "num_decoder_attention_heads",
    "swa_num_attention_heads",
    "swa_num_key_value_heads",
    "swa_head_dim",
    "swa_v_head_dim",
    "num_sliding_attention_heads",
    "v_head_dim",
    "global_head_dim",
    "num_global_key_value_heads",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "qk_head_dim",
    "sliding_window",
    "sliding_window_size",
    "attention_window_size",
    "window_size",
    "max_window_layers",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "attention_chunk_size",
    "chunk_size",  // of a recurrence
    "chunk_size_feed_forward",
    "qk_norm",
    "qk_layernorm",
    "qk_norm_type",
    "qk_l2_clip_threshold",
    "max_inference_chunksize",
    "heads_per_ngram",
    "keep_window_size",
    "conv_window",
    "num_heads_in_group",
    "use_qk_norm",
    "num_memory_heads",
    "kv_lora_rank",
    "q_lora_rank",
    "head_ratio",
    "attention_window",  // of types that are refused as a whole
});

bool is_read(std::string_view name) {
    for (const Names names : {Names(kHeadsNames), Names(kKvHeadsNames), Names(kHeadDimNames)}) {
        if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
    return std::find(kUnderstood.begin(), kUnderstood.end(), name) != kUnderstood.end();
}

bool is_suspicious(std::string_view name) {
    const auto in = [name](std::string_view part) { return holds(name, part); };
    return std::any_of(kSuspicious.begin(), kSuspicious.end(), in) &&
           std::none_of(kOtherParts.begin(), kOtherParts.end(), in) && !is_read(name);
}

}  // namespace

void find_strangers(const Fields& config, Findings& findings) {
    for (const std::string& name : config.names()) {
        if (!is_suspicious(name) || !(config.is_number(name) || config.is_list(name))) continue;
        if (config.shown(name) == "0" || config.shown(name) == "[]") continue;
        findings.refuse(
            fmt::format("{} of {} is {}: it may change the kernels, and is not "
                        "understood here",
                        config.path_of(name), config.file(), config.shown(name)));
    }
}

}  // namespace jitney::policy
