// Every operation: the lists of all arguments, and one line an operation for what is made of them
// (the C ABI, the command, the reference page).
#pragma once

#include "operations/append_kv/fields.hpp"
#include "operations/attention/fields.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "operations/fp8_linear/fields.hpp"
#include "operations/fp8_quantize/fields.hpp"
#include "operations/gated_activation/fields.hpp"
#include "operations/merge_states/fields.hpp"
#include "operations/rms_norm/fields.hpp"
#include "operations/rotary/fields.hpp"

// OPERATION(name, call, Args): jitney_NAME_args and jitney_explain_NAME, and jitney_CALL, of C;
// jitney::CALL of C++.
#define JITNEY_FOR_EACH_OPERATION(OPERATION)                                   \
    OPERATION(attention, attention, AttentionArgs)                             \
    OPERATION(rotary, rotary_emb, RotaryArgs)                                  \
    OPERATION(append_kv, append_kv, AppendKvArgs)                              \
    OPERATION(merge_states, merge_states, MergeStatesArgs)                     \
    OPERATION(rms_norm, rms_norm, RmsNormArgs)                                 \
    OPERATION(gated_activation, gated_activation, GatedActivationArgs)         \
    OPERATION(fp8_quantize, fp8_quantize, Fp8QuantizeArgs)                     \
    OPERATION(fp8_gemm, fp8_gemm, Fp8GemmArgs)                                 \
    OPERATION(fp8_linear, fp8_linear, Fp8LinearArgs)                           \
    OPERATION(fp8_linear_backward, fp8_linear_backward, Fp8LinearBackwardArgs) \
    OPERATION(fp8_linear_inference, fp8_linear_inference, Fp8LinearInferenceArgs)
