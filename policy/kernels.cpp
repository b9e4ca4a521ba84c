#include "policy/kernels.hpp"

#include <array>

#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

constexpr std::array<std::string_view, 5> kFormats = {"fp32", "fp16", "bf16", "e4m3", "e5m2"};
constexpr std::array<std::string_view, 1> kKvSources = {"dense"};
constexpr std::array<std::string_view, 2> kRotaryStyles = {"interleaved", "half_split"};

constexpr std::uint32_t k16Bit = 1u << kFp16 | 1u << kBf16;
constexpr std::uint32_t kFloating = 1u << kFp32 | k16Bit;

constexpr ConstantInfo head_dim(int maximum, int multiple) {
    return {.name = "head_dim",
            .kind = ConstantKind::integer,
            .minimum = multiple,
            .maximum = maximum,
            .multiple = multiple};
}

constexpr ConstantInfo format(std::uint32_t allowed) {
    return {
        .name = "format", .kind = ConstantKind::name, .names = kFormats, .allowed_names = allowed};
}

constexpr ConstantInfo tile(int minimum, int maximum, int multiple) {
    return {.name = "tile",
            .kind = ConstantKind::tile,
            .minimum = minimum,
            .maximum = maximum,
            .multiple = multiple};
}

constexpr ConstantInfo kKv = {.name = "kv", .kind = ConstantKind::name, .names = kKvSources};
constexpr ConstantInfo kCausal = {.name = "causal", .kind = ConstantKind::flag};
constexpr ConstantInfo kStages = {
    .name = "stages", .kind = ConstantKind::integer, .minimum = 3, .maximum = 16, .multiple = 1};
constexpr ConstantInfo kMask = {
    .name = "mask", .kind = ConstantKind::flag, .omitted_when_zero = true};
constexpr ConstantInfo kStyle = {
    .name = "style", .kind = ConstantKind::name, .names = kRotaryStyles};

constexpr std::array kAttentionScalar = {
    head_dim(512, 1), format(kFloating), tile(4, 32, 4), kKv, kCausal, kMask};
constexpr std::array kPrefillMma = {head_dim(256, 8), format(k16Bit), tile(16, 128, 16), kKv,
                                    kCausal,          kMask};
constexpr std::array kDecodeMma = {head_dim(256, 8), format(k16Bit), tile(16, 32, 16), kStages, kKv,
                                   kCausal,          kMask};
constexpr ConstantInfo kPairs = {
    .name = "pairs", .kind = ConstantKind::integer, .minimum = 1, .maximum = 8, .multiple = 1};
constexpr std::array kRotary = {format(kFloating), kStyle, kPairs};

constexpr std::array kKernels = {
    KernelInfo{KernelId::attn_decode_scalar, "attn_decode_scalar", "attention/decode_scalar.cuh",
               kAttentionScalar, 75},
    KernelInfo{KernelId::attn_decode_mma, "attn_decode_mma", "attention/decode_mma.cuh", kDecodeMma,
               80},
    KernelInfo{KernelId::attn_prefill_scalar, "attn_prefill_scalar", "attention/prefill_scalar.cuh",
               kAttentionScalar, 75},
    KernelInfo{KernelId::attn_prefill_mma, "attn_prefill_mma", "attention/prefill_mma.cuh",
               kPrefillMma, 80},
    KernelInfo{KernelId::rotary_emb, "rotary_emb", "rotary/rotary_emb.cuh", kRotary, 75},
};

}  // namespace

std::span<const KernelInfo> kernels() noexcept {
    return kKernels;
}

const KernelInfo& info(KernelId id) noexcept {
    return kKernels[static_cast<std::size_t>(id)];
}

const KernelInfo* find_kernel(std::string_view name) noexcept {
    for (const KernelInfo& kernel : kKernels) {
        if (kernel.name == name) return &kernel;
    }
    return nullptr;
}

}  // namespace jitney::policy
