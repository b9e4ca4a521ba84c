// The arguments of the C ABI as those of the C++ API. They throw Error(invalid_argument).
#pragma once

#include <array>
#include <optional>
#include <string>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/jitney.h"
#include "jitney/merge_states.hpp"
#include "jitney/rotary.hpp"
#include "jitney/serving.hpp"

namespace jitney::c_abi {

AttentionArgs arguments(const jitney_attention_args* given);
RotaryArgs arguments(const jitney_rotary_args* given);
AppendKvArgs arguments(const jitney_append_kv_args* given);
// The arguments point into `parts`.
using MergeParts = std::array<PartialState, 16>;
MergeStatesArgs arguments(const jitney_merge_states_args* given, MergeParts& parts);
Fp8QuantizeArgs arguments(const jitney_fp8_quantize_args* given);
Fp8GemmArgs arguments(const jitney_fp8_gemm_args* given);
Fp8Recipe recipe_of(const jitney_fp8_recipe& given);
Fp8LinearArgs arguments(const jitney_fp8_linear_args* given);
Fp8LinearBackwardArgs arguments(const jitney_fp8_linear_backward_args* given);

struct ServingCall {
    std::string config;
    std::string arch;  // empty: none was given
    std::optional<DType> dtype;
    std::optional<RotaryStyle> style;
    KvCache cache = KvCache::paged;
    LogitsFunction logits;

    // Refers to this call.
    ServingOptions options() const;
};
ServingCall arguments(const jitney_serving_args* given);

// A text that the caller has to give; `name` is for the sentence where it is null.
std::string text(const char* given, const char* name);

}  // namespace jitney::c_abi
