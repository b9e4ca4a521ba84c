#include "tests/kernels/catalogue.hpp"

#include <algorithm>
#include <utility>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/norm/gated_activation.h"
#include "kernel_sources/norm/row_shape.h"
#include "operations/append_kv/choose.hpp"
#include "operations/attention/choose.hpp"
#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/update.hpp"
#include "operations/fp8_quantize/choose.hpp"
#include "operations/gated_activation/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/rms_norm/choose.hpp"
#include "operations/rotary/choose.hpp"

namespace jitney::tests {
namespace {

using policy::AppendKvProblem;
using policy::AttentionProblem;
using policy::Fp8GemmProblem;
using policy::Fp8QuantizeProblem;
using policy::GatedActivationProblem;
using policy::MergeStatesProblem;
using policy::RmsNormProblem;
using policy::RotaryProblem;

AttentionProblem attention_shape(int head_dim, int format, bool causal, bool mask) {
    AttentionProblem shape;
    shape.format = format;
    shape.q_heads = 32;
    shape.kv_heads = 8;
    shape.head_dim = head_dim;
    shape.causal = causal;
    shape.mask = mask;
    return shape;
}

// Keys on pages; ragged queries, or queries of one length whose keys are appended.
AttentionProblem served_shape(int head_dim, bool packed) {
    AttentionProblem shape = attention_shape(head_dim, kBf16, true, false);
    shape.paged = true;
    shape.packed = packed;
    shape.append = !packed;
    return shape;
}

std::vector<AttentionProblem> attention_shapes(Extent extent) {
    std::vector<AttentionProblem> shapes;
    const auto add = [&](int head_dim, int format, bool causal, bool mask) {
        shapes.push_back(attention_shape(head_dim, format, causal, mask));
    };
    const auto add_unaligned = [&](int head_dim, int format) {
        add(head_dim, format, true, false);
        shapes.back().aligned = false;
    };
    for (const int head_dim : {64, 128, 256})
        add(head_dim, kBf16, true, false);
    add(128, kFp32, true, false);
    add(59, kFp16, false, true);
    add(128, kBf16, false, true);
    // A server's prefill and decode.
    for (const int head_dim : {64, 128}) {
        shapes.push_back(served_shape(head_dim, true));
        shapes.push_back(served_shape(head_dim, false));
    }
    if (extent == Extent::selection) return shapes;

    // Language models, encoders with padding masks, diffusion and vision models.
    for (const int head_dim : {64, 80, 96, 128})
        add(head_dim, kFp16, true, false);
    for (const int head_dim : {32, 64, 72, 128}) {
        add(head_dim, kBf16, false, false);
        add(head_dim, kBf16, false, true);
        add(head_dim, kBf16, true, true);
    }
    // The edges: the smallest head, heads that are filled up to 16, the largest.
    for (const int head_dim : {8, 40, 72, 80, 96, 192})
        add(head_dim, kBf16, true, false);
    add(256, kFp16, false, true);
    add(512, kFp32, true, true);
    add(512, kBf16, true, false);
    add_unaligned(1, kFp16);
    add_unaligned(64, kBf16);
    // Options, one at a time and together.
    for (const int head_dim : {64, 128}) {
        for (const bool packed : {true, false}) {
            AttentionProblem shape = served_shape(head_dim, packed);
            shape.append = false;
            shapes.push_back(shape);
            for (bool AttentionProblem::*option :
                 {&AttentionProblem::window, &AttentionProblem::softcap, &AttentionProblem::alibi,
                  &AttentionProblem::sinks}) {
                shape.*option = true;
                shapes.push_back(shape);
                shapes.back().paged = false;
            }
            shapes.push_back(shape);
        }
    }
    AttentionProblem ragged = served_shape(128, true);
    ragged.paged = false;
    shapes.push_back(ragged);
    return shapes;
}

template <class Problem>
void add_both_alignments(std::vector<Problem>& shapes, Problem shape) {
    for (const bool aligned : {true, false}) {
        shape.aligned = aligned;
        shapes.push_back(shape);
    }
}

std::vector<RotaryProblem> rotary_shapes() {
    std::vector<RotaryProblem> shapes;
    for (const int format : {kBf16, kFp16, kFp32}) {
        for (const int style : {kInterleaved, kHalfSplit}) {
            RotaryProblem shape;
            shape.format = format;
            shape.style = style;
            shape.heads = 40;
            shape.head_dim = 128;
            shape.rotary_dim = 128;
            add_both_alignments(shapes, shape);
        }
    }
    return shapes;
}

// A server's appends: ragged and of one length, rotated in either style or not, to pages or not.
std::vector<AppendKvProblem> append_kv_shapes() {
    using policy::AppendRotary;
    std::vector<AppendKvProblem> shapes;
    for (const AppendRotary rotary :
         {AppendRotary::none, AppendRotary::interleaved, AppendRotary::half_split}) {
        for (const bool packed : {true, false}) {
            AppendKvProblem shape;
            shape.format = packed ? kBf16 : kFp32;
            shape.kv_heads = 8;
            shape.head_dim = 128;
            shape.packed = packed;
            shape.paged = packed;
            shape.rotary = rotary;
            shape.rotary_dim = rotary == AppendRotary::none ? 0 : 128;
            shape.q_heads = rotary == AppendRotary::none ? 0 : 32;
            shape.tokens = 1;
            add_both_alignments(shapes, shape);
        }
    }
    return shapes;
}

std::vector<MergeStatesProblem> merge_states_shapes() {
    std::vector<MergeStatesProblem> shapes;
    for (const auto& [format, head_dim] : {std::pair{kBf16, 128}, std::pair{kFp16, 64},
                                           std::pair{kFp32, 128}, std::pair{kBf16, 512}}) {
        MergeStatesProblem shape;
        shape.format = format;
        shape.head_dim = head_dim;
        shape.rows = 1;
        add_both_alignments(shapes, shape);
    }
    return shapes;
}

// A layer's norms and those of its heads, values and codes; and what no thread can hold.
std::vector<RmsNormProblem> rms_norm_shapes(Extent extent) {
    std::vector<RmsNormProblem> shapes;
    const auto add = [&](int d, int format, int weight, int result, bool residual) {
        RmsNormProblem shape;
        shape.rows = 1;
        shape.d = d;
        shape.format = format;
        shape.weight = weight;
        shape.result = result;
        shape.residual = residual;
        shapes.push_back(shape);
    };
    add(4096, kBf16, kBf16, kPlainResult, true);
    add(4096, kBf16, kBf16, kRowScaledCodes, true);
    add(128, kBf16, kBf16, kPlainResult, false);
    shapes.back().one_plus = true;
    if (extent == Extent::selection) return shapes;
    for (const int d : {8, 1024, 4096, 5120, 8192, 16384, 65536}) {
        for (const int result : {kPlainResult, kScaledCodes, kRowScaledCodes}) {
            add(d, kBf16, kFp32, result, d >= 4096);
            add(d, kFp32, kFp32, result, d == 1024);
        }
    }
    add(1000, kFp16, kNoWeight, kPlainResult, false);
    add(4097, kFp16, kFp16, kRowScaledCodes, true);
    add(60001, kBf16, kBf16, kRowScaledCodes, true);
    add(768, kFp16, kFp16, kPlainResult, true);
    shapes.back().center = shapes.back().bias = true;
    return shapes;
}

std::vector<GatedActivationProblem> gated_activation_shapes(Extent extent) {
    std::vector<GatedActivationProblem> shapes;
    const auto add = [&](int d, int format, int activation, int result) {
        GatedActivationProblem shape;
        shape.rows = 1;
        shape.d = d;
        shape.format = format;
        shape.activation = activation;
        shape.result = result;
        shapes.push_back(shape);
    };
    add(14336, kBf16, kSilu, kPlainResult);
    add(14336, kBf16, kSilu, kRowScaledCodes);
    if (extent == Extent::selection) return shapes;
    for (const int activation : {kSilu, kGelu, kGeluTanh, kRelu2}) {
        for (const int result : {kPlainResult, kScaledCodes, kRowScaledCodes}) {
            add(11008, kBf16, activation, result);
            add(100, kFp32, activation, result);
        }
    }
    for (const int result : {kPlainResult, kRowScaledCodes}) {
        add(65536, kBf16, kGelu, result);
        add(65536, kFp32, kSilu, result);
        add(777, kFp16, kSilu, result);
    }
    return shapes;
}

std::vector<Fp8QuantizeProblem> fp8_quantize_shapes(Extent extent) {
    std::vector<Fp8QuantizeProblem> shapes;
    const auto add = [&](int format, int out, int codes, bool amax, bool dynamic) {
        Fp8QuantizeProblem shape;
        shape.format = format;
        shape.out = out;
        shape.codes = codes;
        shape.amax = amax;
        shape.dynamic = dynamic;
        shapes.push_back(shape);
    };
    // Dynamic scaling, and a training step's operands with their amax.
    add(kBf16, kFp8E4m3, kRowCodes, true, true);
    add(kBf16, kFp8E5m2, kBothCodes, true, false);
    add(kFp32, kFp8E4m3, kTransposedCodes, true, false);
    const auto add_parts = [&](int format, int out, int granularity, std::int64_t cols) {
        add(format, out, kRowCodes, true, true);
        shapes.back().granularity = granularity;
        shapes.back().rows = 16;
        shapes.back().cols = cols;
    };
    for (const int granularity : {kScaleOfRow, kScaleOfGroup, kScaleOfBlock})
        add_parts(kBf16, kFp8E4m3, granularity, 4096);
    if (extent == Extent::selection) return shapes;
    for (const int format : {kBf16, kFp16, kFp32}) {
        for (const int out : {kFp8E4m3, kFp8E5m2}) {
            for (const std::int64_t cols : {128, 5120, 14336, 33000})
                add_parts(format, out, kScaleOfRow, cols);
            add_parts(format, out, kScaleOfGroup, 4096);
            add_parts(format, out, kScaleOfBlock, 4096);
            for (const int codes : {kRowCodes, kTransposedCodes, kBothCodes}) {
                add(format, out, codes, false, false);
                add(format, out, codes, true, false);
            }
        }
        add(format, kFp8E4m3, kRowCodes, true, true);
    }
    return shapes;
}

std::vector<Fp8GemmProblem> fp8_gemm_shapes(Extent extent) {
    std::vector<Fp8GemmProblem> shapes;
    const auto add = [&](int a, int b, int out, bool trans_a, bool trans_b) {
        Fp8GemmProblem shape;
        shape.a = a;
        shape.b = b;
        shape.out = out;
        shape.m = shape.n = shape.k = 1024;
        shape.trans_a = trans_a;
        shape.trans_b = trans_b;
        shapes.push_back(shape);
    };
    // A linear layer forward, and the products of its gradients.
    add(kFp8E4m3, kFp8E4m3, kBf16, false, true);
    add(kFp8E5m2, kFp8E4m3, kBf16, true, false);
    if (extent == Extent::selection) return shapes;
    add(kFp8E5m2, kFp8E4m3, kBf16, false, false);
    add(kFp8E4m3, kFp8E5m2, kFp32, true, true);
    add(kFp8E5m2, kFp8E5m2, kFp16, false, true);
    add(kFp8E4m3, kFp8E4m3, kFp8E4m3, false, true);
    add(kFp8E4m3, kFp8E4m3, kFp8E5m2, true, false);
    return shapes;
}

}  // namespace

std::vector<policy::Spec> standard_catalogue(Arch arch, Extent extent) {
    std::vector<policy::Spec> specs;
    const auto add = [&](const std::vector<policy::Spec>& more) {
        for (const policy::Spec& spec : more) {
            if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
        }
    };
    const policy::DeviceFacts facts = policy::typical_facts(arch);
    for (const AttentionProblem& shape : attention_shapes(extent)) {
        add(policy::attention_catalogue(shape, facts));
        // The policy passes this kernel by where Hopper has its own; a call may name it.
        AttentionProblem decode = shape;
        decode.batch = decode.q_len = 1;
        decode.kv_len = 4096;
        const auto named =
            policy::choose_attention(decode, facts, policy::KernelId::attn_decode_mma);
        if (named) add({named->spec});
    }
    for (const RotaryProblem& shape : rotary_shapes())
        add(policy::rotary_catalogue(shape, facts));
    for (const AppendKvProblem& shape : append_kv_shapes())
        policy::add_once(specs, policy::rank_append_kv(shape, facts).choice);
    for (const MergeStatesProblem& shape : merge_states_shapes())
        policy::add_once(specs, policy::rank_merge_states(shape, facts).choice);
    for (const RmsNormProblem& shape : rms_norm_shapes(extent))
        policy::add_once(specs, policy::rank_rms_norm(shape, facts).choice);
    for (const GatedActivationProblem& shape : gated_activation_shapes(extent))
        policy::add_once(specs, policy::rank_gated_activation(shape, facts).choice);
    for (const Fp8QuantizeProblem& shape : fp8_quantize_shapes(extent))
        add(policy::fp8_quantize_catalogue(shape, facts));
    for (Fp8GemmProblem shape : fp8_gemm_shapes(extent)) {
        add(policy::fp8_gemm_catalogue(shape, facts));
        shape.fast_accum = true;
        add(policy::fp8_gemm_catalogue(shape, facts));
    }
    add({policy::choose_fp8_update(facts).spec});
    for (const int format : {kBf16, kFp16, kFp32}) {
        for (const int out : {kBf16, kFp32}) {
            policy::ColumnSumsProblem sums;
            sums.format = format;
            sums.out = out;
            sums.cols = 1;
            if (extent == Extent::full || format == out)
                add({policy::choose_column_sums(sums, facts).spec});
        }
    }
    std::stable_sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) {
        return policy::info(a.kernel).name < policy::info(b.kernel).name;
    });
    return specs;
}

}  // namespace jitney::tests
