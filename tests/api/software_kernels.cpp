#include "tests/api/software_kernels.hpp"

#include <string_view>

#include "kernel_sources/fp8/update_params.h"
#include "operations/fp8_linear/reference.hpp"
#include "tests/api/software_launches.hpp"

namespace jitney::tests {

void run_software_kernel(const char* image, void** parameters) {
    const std::string_view text = image;
    if (text.find("\"attention/work_map") != std::string_view::npos) {
        run_work_map(*static_cast<const WorkMapParams*>(parameters[0]));
    } else if (text.find("\"attention/append_kv") != std::string_view::npos) {
        run_append_kv(text, *static_cast<const AppendKvParams*>(parameters[0]));
    } else if (text.find("\"attention/merge_states") != std::string_view::npos) {
        run_merge_states(text, *static_cast<const MergeStatesParams*>(parameters[0]));
    } else if (text.find("\"attention/mask_bits") != std::string_view::npos) {
        run_mask_bits(*static_cast<const AttentionParams*>(parameters[0]));
    } else if (text.find("\"rotary/") != std::string_view::npos) {
        run_rotary(text, *static_cast<const RotaryParams*>(parameters[0]));
    } else if (text.find("\"norm/rms_norm") != std::string_view::npos) {
        run_rms_norm(text, *static_cast<const RmsNormParams*>(parameters[0]));
    } else if (text.find("\"norm/gated_activation") != std::string_view::npos) {
        run_gated_activation(text, *static_cast<const GatedActivationParams*>(parameters[0]));
    } else if (text.find("\"fp8/gemm_wgmma") != std::string_view::npos) {
        run_fp8_gemm_wgmma(text, *static_cast<const Fp8GemmWgmmaParams*>(parameters[0]));
    } else if (text.find("\"fp8/gemm") != std::string_view::npos) {
        run_fp8_gemm(text, *static_cast<const Fp8GemmParams*>(parameters[0]));
    } else if (text.find("\"fp8/quantize_rows") != std::string_view::npos) {
        run_fp8_quantize_rows(text, *static_cast<const Fp8ScalesParams*>(parameters[0]));
    } else if (text.find("\"fp8/quantize_groups") != std::string_view::npos) {
        run_fp8_quantize_groups(text, *static_cast<const Fp8ScalesParams*>(parameters[0]));
    } else if (text.find("\"fp8/quantize") != std::string_view::npos) {
        run_fp8_quantize(text, *static_cast<const Fp8QuantizeParams*>(parameters[0]));
    } else if (text.find("\"fp8/update") != std::string_view::npos) {
        reference::fp8_update(*static_cast<const Fp8UpdateParams*>(parameters[0]));
    } else if (text.find("\"fp8/column_sums") != std::string_view::npos) {
        run_column_sums(text, *static_cast<const ColumnSumsParams*>(parameters[0]));
    } else if (text.find("\"attention/prefill_wgmma") != std::string_view::npos) {
        run_prefill_wgmma(text, *static_cast<const PrefillWgmmaParams*>(parameters[0]));
    } else {
        run_attention(text, *static_cast<const AttentionParams*>(parameters[0]));
    }
}

}  // namespace jitney::tests
