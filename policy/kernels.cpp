#include "policy/kernels.hpp"

#include <fmt/format.h>

#include <array>

#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

constexpr std::array<std::string_view, 5> kFormats = {"fp32", "fp16", "bf16", "e4m3", "e5m2"};
constexpr std::array<std::string_view, 2> kKvSources = {"dense", "paged"};
constexpr std::array<std::string_view, 2> kQuerySchedules = {"dense", "packed"};
constexpr std::array<std::string_view, 2> kRotaryStyles = {"interleaved", "half_split"};
constexpr std::array<std::string_view, 3> kAppendRotary = {"none", "interleaved", "half_split"};

constexpr std::array<std::string_view, 4> kFp8Codes = {"none", "row", "transposed", "both"};

constexpr std::uint32_t k16Bit = 1u << kFp16 | 1u << kBf16;
constexpr std::uint32_t kFloating = 1u << kFp32 | k16Bit;
constexpr std::uint32_t k8Bit = 1u << kFp8E4m3 | 1u << kFp8E5m2;

constexpr ConstantInfo head_dim(int maximum, int multiple) {
    return {
        .name = "head_dim", .kind = ConstantKind::integer, .range = {multiple, maximum, multiple}};
}

constexpr ConstantInfo format(std::uint32_t allowed, std::string_view name = "format") {
    return {.name = name, .kind = ConstantKind::name, .names = kFormats, .allowed_names = allowed};
}

constexpr ConstantInfo tile(Range m, Range n) {
    return {.name = "tile", .kind = ConstantKind::tile, .range = m, .range_n = n};
}

constexpr ConstantInfo kKv = {.name = "kv", .kind = ConstantKind::name, .names = kKvSources};
constexpr ConstantInfo kCausal = {.name = "causal", .kind = ConstantKind::flag};
constexpr ConstantInfo kStages = {
    .name = "stages", .kind = ConstantKind::integer, .range = {3, 16}};
// An option: not spelled out where it is off.
constexpr ConstantInfo option(std::string_view name) {
    return {.name = name, .kind = ConstantKind::flag, .omitted_when_zero = true};
}

// What a kernel's source asks for and the kernel never does: not spelled out.
constexpr std::array<std::string_view, 1> kNever = {"none"};
constexpr ConstantInfo never(std::string_view name) {
    return {.name = name, .kind = ConstantKind::name, .names = kNever, .omitted_when_zero = true};
}

constexpr ConstantInfo kQueries = {.name = "queries",
                                   .kind = ConstantKind::name,
                                   .names = kQuerySchedules,
                                   .omitted_when_zero = true};
constexpr ConstantInfo kMask = option("mask");
constexpr ConstantInfo kWindow = option("window");
constexpr ConstantInfo kSoftcap = option("softcap");
constexpr ConstantInfo kAlibi = option("alibi");
constexpr ConstantInfo kSinks = option("sinks");
constexpr ConstantInfo kAppend = option("append");
// Of a logits function of the caller's.
constexpr ConstantInfo kLogits = {
    .name = "logits", .kind = ConstantKind::digest, .omitted_when_zero = true};
constexpr ConstantInfo kStyle = {
    .name = "style", .kind = ConstantKind::name, .names = kRotaryStyles};

constexpr ConstantInfo kScalarTile = tile({4, 32, 4}, {4, 32, 4});

constexpr std::array kPrefillScalar = {
    head_dim(512, 1), format(kFloating), kScalarTile, kQueries, kKv,    kCausal, kMask,
    kWindow,          kSoftcap,          kAlibi,      kSinks,   kLogits};
constexpr std::array kDecodeScalar = {
    head_dim(512, 1), format(kFloating), kScalarTile, kKv,    kCausal, kMask,
    kWindow,          kSoftcap,          kAlibi,      kSinks, kAppend, kLogits};
constexpr std::array kPrefillMma = {head_dim(256, 8),
                                    format(k16Bit),
                                    tile({64, 128, 64}, {16, 128, 16}),
                                    kQueries,
                                    kKv,
                                    kCausal,
                                    kMask,
                                    kWindow,
                                    kSoftcap,
                                    kAlibi,
                                    kSinks,
                                    kLogits};
constexpr std::array kDecodeMma = {head_dim(256, 8),
                                   format(k16Bit),
                                   tile({16, 16}, {16, 64, 16}),
                                   kStages,
                                   kKv,
                                   kCausal,
                                   kMask,
                                   kWindow,
                                   kSoftcap,
                                   kAlibi,
                                   kSinks,
                                   kAppend,
                                   kLogits};
constexpr std::array kPrefillWgmma = {
    head_dim(256, 8),
    never("head_dim_v"),  // that of V is that of Q
    format(k16Bit),
    tile({128, 192, 64}, {64, 128, 16}),
    ConstantInfo{.name = "stages", .kind = ConstantKind::integer, .range = {2, 8}},
    ConstantInfo{.name = "q_stages", .kind = ConstantKind::integer, .range = {1, 3}},
    never("queries"),
    ConstantInfo{.name = "kv",
                 .kind = ConstantKind::name,
                 .names = kKvSources,
                 .allowed_names = 1u << kDenseKv},
    kCausal,
    never("mask"),
    kWindow,
    kSoftcap,
    kAlibi,
    kSinks};
// Three warpgroups have 128 registers a thread until they share them out anew: too few for the
// accumulators of a wider output.
std::string_view why_not_wgmma(std::span<const std::int16_t> values) {
    constexpr std::size_t head_dim_slot = 0;
    constexpr std::size_t tile_m_slot = 3;
    if (values[tile_m_slot] <= 128 || values[head_dim_slot] <= 64) return {};
    return "tiles of 192 rows need a head_dim up to 64";
}

// Of kernels that prepare what another reads, and of those that have nothing else to choose.
constexpr std::array kThreads = {
    ConstantInfo{.name = "threads", .kind = ConstantKind::integer, .range = {32, 1024, 1, true}}};
constexpr std::array kMergeStates = {
    head_dim(512, 1), format(kFloating),
    ConstantInfo{.name = "width", .kind = ConstantKind::integer, .range = {1, 4, 1, true}}};
constexpr ConstantInfo kPairs = {
    .name = "pairs", .kind = ConstantKind::integer, .range = {1, 8, 1, true}};
constexpr std::array kRotary = {format(kFloating), kStyle, kPairs};
constexpr ConstantInfo kRotaryOption = {.name = "rotary",
                                        .kind = ConstantKind::name,
                                        .names = kAppendRotary,
                                        .omitted_when_zero = true};
constexpr std::array kAppendKv = {format(kFloating), kPairs, kQueries, kKv, kRotaryOption};
constexpr std::array kColumnSums = {format(kFloating), format(kFloating, "out")};
constexpr ConstantInfo kCodes = {.name = "codes", .kind = ConstantKind::name, .names = kFp8Codes};
// The codes are computed bit by bit: for what has no instruction for it.
constexpr std::array kQuantize = {format(kFloating), format(k8Bit, "out"), kCodes, option("amax"),
                                  option("software")};

constexpr ConstantInfo kProductStages = {
    .name = "stages", .kind = ConstantKind::integer, .range = {3, 16}};
constexpr std::array kFp8GemmMma = {
    format(k8Bit, "a"),
    format(k8Bit, "b"),
    format(kFloating | k8Bit, "out"),
    tile({16, 128, 1, true}, {32, 128, 1, true}),
    kProductStages,
    ConstantInfo{.name = "trans_a", .kind = ConstantKind::flag},
    ConstantInfo{.name = "trans_b", .kind = ConstantKind::flag},
    option("unpack"),     // products of fp16, where the tensor cores take no FP8
    option("promote"),    // sums of the tensor cores are added up beside them
    option("unaligned"),  // rows begin anywhere
};

constexpr std::array kKernels = {
    KernelInfo{KernelId::attn_decode_scalar, "attn_decode_scalar", "attention/decode_scalar.cuh",
               kDecodeScalar, 75},
    KernelInfo{KernelId::attn_decode_mma, "attn_decode_mma", "attention/decode_mma.cuh", kDecodeMma,
               80},
    KernelInfo{KernelId::attn_prefill_scalar, "attn_prefill_scalar", "attention/prefill_scalar.cuh",
               kPrefillScalar, 75},
    KernelInfo{KernelId::attn_prefill_mma, "attn_prefill_mma", "attention/prefill_mma.cuh",
               kPrefillMma, 80},
    KernelInfo{KernelId::attn_work_map, "attn_work_map", "attention/work_map.cuh", kThreads, 75,
               true},
    KernelInfo{KernelId::attn_mask_bits, "attn_mask_bits", "attention/mask_bits.cuh", kThreads, 80,
               true},
    KernelInfo{KernelId::attn_merge_states, "attn_merge_states", "attention/merge_states.cuh",
               kMergeStates, 75},
    KernelInfo{KernelId::append_kv, "append_kv", "attention/append_kv.cuh", kAppendKv, 75},
    KernelInfo{KernelId::rotary_emb, "rotary_emb", "rotary/rotary_emb.cuh", kRotary, 75},
    KernelInfo{KernelId::fp8_quantize, "fp8_quantize", "fp8/quantize.cuh", kQuantize, 75},
    KernelInfo{KernelId::fp8_gemm_mma, "fp8_gemm_mma", "fp8/gemm_mma.cuh", kFp8GemmMma, 89},
    KernelInfo{KernelId::fp8_update, "fp8_update", "fp8/update.cuh", kThreads, 75, true},
    KernelInfo{KernelId::column_sums, "column_sums", "fp8/column_sums.cuh", kColumnSums, 75, true},
    KernelInfo{KernelId::attn_prefill_wgmma, "attn_prefill_wgmma", "attention/prefill_wgmma.cuh",
               kPrefillWgmma, 90, false, Arch{90, 'a'}, &why_not_wgmma},
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

const KernelInfo* find_variant(std::string_view name) noexcept {
    const KernelInfo* kernel = find_kernel(name);
    return kernel != nullptr && !kernel->helper ? kernel : nullptr;
}

bool runs_on(const KernelInfo& kernel, const Arch& arch) noexcept {
    if (kernel.exact_arch.number != 0) return arch == kernel.exact_arch;
    return arch.number >= kernel.minimum_arch;
}

std::string arch_needed(const KernelInfo& kernel) {
    if (kernel.exact_arch.number != 0) return kernel.exact_arch.text();
    return fmt::format("sm_{} or newer", kernel.minimum_arch);
}

std::string allowed_names(const ConstantInfo& constant) {
    std::string list;
    for (std::size_t i = 0; i < constant.names.size(); ++i) {
        if (!constant.allows_name(i)) continue;
        if (!list.empty()) list += ", ";
        list += constant.names[i];
    }
    return list;
}

bool takes_format(const KernelInfo& kernel, int format) noexcept {
    for (const ConstantInfo& constant : kernel.constants) {
        if (constant.name == "format") {
            return format >= 0 && constant.allows_name(static_cast<std::size_t>(format));
        }
    }
    return false;
}

}  // namespace jitney::policy
