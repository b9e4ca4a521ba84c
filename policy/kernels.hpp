// The registry: every kernel, its source, and the constants that a specialization of it fixes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/arch.hpp"

namespace jitney::policy {

// Index into kernels().
enum class KernelId : std::uint8_t {
    attn_decode_scalar,
    attn_decode_mma,
    attn_prefill_scalar,
    attn_prefill_mma,
    attn_work_map,
    attn_mask_bits,
    attn_merge_states,
    append_kv,
    rotary_emb,
    fp8_quantize,
    fp8_gemm_mma,
    fp8_update,
    column_sums,
    attn_prefill_wgmma,
};

// How a constant's value is spelled in a specialization text.
enum class ConstantKind : std::uint8_t {
    integer,  // 128
    name,     // bf16: one of `names`, whose index is the value
    tile,     // 64x32: two values, <name>_m and <name>_n in the source
    flag,     // 0 or 1
    digest,   // 16 hexadecimal digits: four values, the first the lowest; of a source that the
              // caller gives
};

struct Range {
    int minimum = 0;
    int maximum = 0;
    int multiple = 1;
    bool power_of_two = false;

    bool holds(int value) const noexcept {
        return value >= minimum && value <= maximum && value % multiple == 0 &&
               (!power_of_two || (value & (value - 1)) == 0);
    }
};

// Every combination of values that the constants of a kernel allow compiles, but those of which the
// kernel's why_not() tells.
struct ConstantInfo {
    std::string_view name;
    ConstantKind kind;
    Range range = {};    // of an integer, or of the first side of a tile
    Range range_n = {};  // of the second side
    std::span<const std::string_view> names = {};
    std::uint32_t allowed_names = ~0u;  // bit i: names[i] may be used
    bool omitted_when_zero = false;     // an option that is off is not spelled out

    bool allows_name(std::size_t i) const noexcept {
        return i < names.size() && (allowed_names >> i & 1) != 0;
    }
};

struct KernelInfo {
    KernelId id;
    std::string_view name;
    std::string_view source;  // the embedded file that defines the kernel's template
    std::span<const ConstantInfo> constants;
    int minimum_arch;      // 80 for sm_80 and newer
    bool helper = false;   // runs beside another kernel, and can't be asked for by name
    Arch exact_arch = {};  // the only one that has its instructions; none: every one from the
                           // minimum on
    // Why there is no code for values that are allowed one by one; empty where there is. Null:
    // there is for all.
    std::string_view (*why_not)(std::span<const std::int16_t> values) = nullptr;
};

std::span<const KernelInfo> kernels() noexcept;
const KernelInfo& info(KernelId id) noexcept;
const KernelInfo* find_kernel(std::string_view name) noexcept;
// One that can be asked for by name instead of another; null where it is a helper, or none.
const KernelInfo* find_variant(std::string_view name) noexcept;

// Whether there is code of the kernel for that arch, and what it needs: "sm_90a", "sm_80 or newer".
bool runs_on(const KernelInfo& kernel, const Arch& arch) noexcept;
std::string arch_needed(const KernelInfo& kernel);

// "fp16, bf16"
std::string allowed_names(const ConstantInfo& constant);
// Whether the kernel has code for that format (a jitney::Format).
bool takes_format(const KernelInfo& kernel, int format) noexcept;

}  // namespace jitney::policy
