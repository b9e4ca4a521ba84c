// The tensors of an attention call by their names.
#pragma once

#include <array>
#include <optional>

#include "jitney/attention.hpp"

namespace jitney {

struct TensorField {
    const char* name;
    Tensor AttentionArgs::*member;
};

struct OptionalTensorField {
    const char* name;
    std::optional<Tensor> AttentionArgs::*member;
};

inline constexpr std::array kTensorFields = {
    TensorField{"q", &AttentionArgs::q},
    TensorField{"k", &AttentionArgs::k},
    TensorField{"v", &AttentionArgs::v},
    TensorField{"out", &AttentionArgs::out},
};

inline constexpr std::array kOptionalTensorFields = {
    OptionalTensorField{"mask", &AttentionArgs::mask},
    OptionalTensorField{"lse", &AttentionArgs::lse},
    OptionalTensorField{"qo_indptr", &AttentionArgs::qo_indptr},
    OptionalTensorField{"kv_lens", &AttentionArgs::kv_lens},
    OptionalTensorField{"kv_indptr", &AttentionArgs::kv_indptr},
    OptionalTensorField{"req_to_token", &AttentionArgs::req_to_token},
    OptionalTensorField{"req_pool_indices", &AttentionArgs::req_pool_indices},
    OptionalTensorField{"block_table", &AttentionArgs::block_table},
    OptionalTensorField{"kv_page_indptr", &AttentionArgs::kv_page_indptr},
    OptionalTensorField{"kv_page_indices", &AttentionArgs::kv_page_indices},
    OptionalTensorField{"last_page_len", &AttentionArgs::last_page_len},
    OptionalTensorField{"alibi_slopes", &AttentionArgs::alibi_slopes},
    OptionalTensorField{"sinks", &AttentionArgs::sinks},
    OptionalTensorField{"new_k", &AttentionArgs::new_k},
    OptionalTensorField{"new_v", &AttentionArgs::new_v},
};

}  // namespace jitney
