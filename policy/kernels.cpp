#include "policy/kernels.hpp"

#include <fmt/format.h>

#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/attention/decode_cluster.h"
#include "kernel_sources/attention/layout.h"
#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "kernel_sources/attention/work_map.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/column_sums_params.h"
#include "kernel_sources/fp8/gemm_params.h"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/norm/row_shape.h"
#include "policy/spec.hpp"

namespace jitney::policy {
namespace {

constexpr std::array<std::string_view, 5> kFormats = {"fp32", "fp16", "bf16", "e4m3", "e5m2"};
constexpr std::array<std::string_view, 2> kKvSources = {"dense", "paged"};
constexpr std::array<std::string_view, 2> kQuerySchedules = {"dense", "packed"};
constexpr std::array<std::string_view, 2> kRotaryStyles = {"interleaved", "half_split"};
constexpr std::array<std::string_view, 3> kAppendRotary = {"none", "interleaved", "half_split"};
constexpr std::array<std::string_view, 4> kFp8Codes = {"none", "row", "transposed", "both"};
constexpr std::array<std::string_view, 4> kNormWeights = {"fp32", "fp16", "bf16", "none"};
constexpr std::array<std::string_view, 3> kRowResults = {"plain", "e4m3", "e4m3_rows"};
constexpr std::array<std::string_view, 4> kActivations = {"silu", "gelu", "gelu_tanh", "relu2"};
// In the order of jitney::Fp8Scales.
constexpr std::array<std::string_view, 3> kFp8ScaleKinds = {"one", "sides", "blocks"};

constexpr std::uint32_t k16Bit = 1u << kFp16 | 1u << kBf16;
constexpr std::uint32_t kFloating = 1u << kFp32 | k16Bit;
constexpr std::uint32_t k8Bit = 1u << kFp8E4m3 | 1u << kFp8E5m2;

// The words of which the rows are made.

constexpr ConstantInfo integer(std::string_view name, Range range) {
    return {.name = name, .kind = ConstantKind::integer, .range = range};
}
constexpr ConstantInfo head_dim(int maximum, int multiple) {
    return integer("head_dim", {multiple, maximum, multiple});
}
constexpr ConstantInfo stages(int minimum, int maximum, std::string_view name = "stages") {
    return integer(name, {minimum, maximum});
}
constexpr ConstantInfo power_of_two(std::string_view name, int minimum, int maximum) {
    return integer(name, {minimum, maximum, 1, true});
}
constexpr ConstantInfo tile(Range m, Range n) {
    return {.name = "tile", .kind = ConstantKind::tile, .range = m, .range_n = n};
}
constexpr ConstantInfo one_of(std::string_view name, std::span<const std::string_view> names,
                              std::uint32_t allowed = ~0u) {
    return {.name = name, .kind = ConstantKind::name, .names = names, .allowed_names = allowed};
}
constexpr ConstantInfo format(std::uint32_t allowed, std::string_view name = "format") {
    return one_of(name, kFormats, allowed);
}
constexpr ConstantInfo flag(std::string_view name) {
    return {.name = name, .kind = ConstantKind::flag};
}
constexpr ConstantInfo omitted(ConstantInfo constant) {
    constant.omitted_when_zero = true;
    return constant;
}
// Not spelled out where it is off.
constexpr ConstantInfo option(std::string_view name) {
    return omitted(flag(name));
}

constexpr ConstantInfo kKv = one_of("kv", kKvSources);
constexpr ConstantInfo kQueries = omitted(one_of("queries", kQuerySchedules));
constexpr ConstantInfo kCausal = flag("causal");
constexpr ConstantInfo kMask = option("mask");
constexpr ConstantInfo kWindow = option("window");
constexpr ConstantInfo kSoftcap = option("softcap");
constexpr ConstantInfo kAlibi = option("alibi");
constexpr ConstantInfo kSinks = option("sinks");
constexpr ConstantInfo kAppend = option("append");
// A logits function of the caller's.
constexpr ConstantInfo kLogits = {
    .name = "logits", .kind = ConstantKind::digest, .omitted_when_zero = true};
constexpr ConstantInfo kFp8Scales = omitted(one_of("scales", kFp8ScaleKinds));
constexpr ConstantInfo kScalarTile = tile({4, 32, 4}, {4, 32, 4});
constexpr ConstantInfo kThreads = power_of_two("threads", 32, 1024);

// Those of kernels of rows (policy/row_tile.hpp).
constexpr ConstantInfo kRowResult = omitted(one_of("result", kRowResults));
constexpr ConstantInfo kRowWidth = power_of_two("width", 1, 8);
constexpr ConstantInfo kRowThreads = integer("threads", {1, 1024});
// Not spelled out where nothing is held.
constexpr ConstantInfo kRowVectors = omitted(integer("vectors", {1, 16}));

int row_bytes(const Values& of) {
    return row_shared_bytes(of["threads"], of["vectors"], of["width"], of["result"]);
}
std::string_view why_no_row(const Values& of) {
    const int threads = of["threads"];
    if (threads % 32 == 0 || (threads < 32 && (threads & (threads - 1)) == 0)) return {};
    return "threads of a row are a power of two, or whole warps of 32";
}

std::string_view why_no_group(const Values& of) {
    const int rows = of["scale_rows"];
    if (rows == 1 || rows == kFp8ScaleCols) return {};
    return "a scale has one row, or 128";
}

int element_bytes(int format) {
    if (format == kFp32) return 4;
    return format == kFp8E4m3 || format == kFp8E5m2 ? 1 : 2;
}

int scalar_bytes(const Values& of) {
    return scalar_shared_bytes(of["head_dim"], element_bytes(of["format"]), of["tile_m"],
                               of["tile_n"]);
}

Fp8WgmmaTiles fp8_wgmma_tiles(const Values& of) {
    const bool swap = of["swap"] != 0;
    return {.u = of[swap ? "tile_n" : "tile_m"],
            .v = of[swap ? "tile_m" : "tile_n"],
            .stages = of["stages"],
            .swap = swap,
            .splits = of["splits"],
            .out_bytes = element_bytes(of["out"]),
            .pieces = of["pieces"],
            .block_scales = of["scales"] == kBlockScales,
            .grouped = of["grouped"] != 0};
}

std::string_view why_not_fp8_mma(const Values& of) {
    return fp8_gemm_why_not(of["tile_m"], of["tile_n"], of["unpack"] != 0, of["promote"] != 0,
                            of["scales"]);
}

std::string_view why_not_fp8_wgmma(const Values& of) {
    return fp8_wgmma_tiles(of).why_not(of["promote"] != 0, of["scales"]);
}

constexpr KernelInfo row(KernelId id, std::string_view name, KernelInfo info) {
    info.id = id;
    info.name = name;
    return info;
}

constexpr KernelInfo kKernels[] = {
#define JITNEY_KERNEL(name, ...) row(KernelId::name, #name, KernelInfo __VA_ARGS__),
#include "policy/kernel_rows.hpp"
#undef JITNEY_KERNEL
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

Range head_dim_range(const KernelInfo& kernel) noexcept {
    for (const ConstantInfo& constant : kernel.constants) {
        if (constant.name == "head_dim") return constant.range;
    }
    return {};
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
