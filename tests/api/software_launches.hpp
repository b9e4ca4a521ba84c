// What one launch of each kernel does. They throw std::logic_error where its parameters contradict
// each other.
#pragma once

#include <string_view>

#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/attention/merge_states.h"
#include "kernel_sources/attention/params.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "kernel_sources/attention/work_map.h"
#include "kernel_sources/fp8/column_sums_params.h"
#include "kernel_sources/fp8/gemm_params.h"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/norm/gated_activation.h"
#include "kernel_sources/norm/rms_norm.h"
#include "kernel_sources/rotary/params.h"
#include "operations/attention/reference.hpp"

namespace jitney::tests {

void run_attention(std::string_view image, const AttentionParams& p);
// With the tensor maps that the fake driver makes: the address, and what it fills the rest with.
const void* address_of(const TensorMapBits& map);
void run_prefill_wgmma(std::string_view image, const PrefillWgmmaParams& p);
void run_merge_states(std::string_view image, const MergeStatesParams& p);
void run_append_kv(std::string_view image, const AppendKvParams& p);
void run_rotary(std::string_view image, const RotaryParams& p);
void run_rms_norm(std::string_view image, const RmsNormParams& p);
void run_gated_activation(std::string_view image, const GatedActivationParams& p);
void run_fp8_quantize(std::string_view image, const Fp8QuantizeParams& p);
void run_fp8_quantize_rows(std::string_view image, const Fp8ScalesParams& p);
void run_fp8_quantize_groups(std::string_view image, const Fp8ScalesParams& p);
void run_fp8_gemm(std::string_view image, const Fp8GemmParams& p);
void run_fp8_gemm_wgmma(std::string_view image, const Fp8GemmWgmmaParams& p);
void run_column_sums(std::string_view image, const ColumnSumsParams& p);

// What goes before attention, and whether attention finds it as it has to be.
void run_work_map(const WorkMapParams& p);
void check_map(const AttentionParams& p, int tile_m);
void run_mask_bits(const AttentionParams& p);
void check_mask_bits(const AttentionParams& p);

// Where the keys and values of a call stand.
void set_keys(std::string_view image, const AttentionParams& p, DType dtype, int head_dim,
              reference::Attention& call);

}  // namespace jitney::tests
