// The registry: every kernel, its source, and the constants that a specialization of it fixes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "policy/arch.hpp"

namespace jitney::policy {

// Index into kernels().
enum class KernelId : std::uint8_t {
    attn_decode_scalar,
    attn_decode_mma,
    attn_prefill_scalar,
    attn_prefill_mma,
    rotary_emb,
};

// How a constant's value is spelled in a specialization text.
enum class ConstantKind : std::uint8_t {
    integer,  // 128
    name,     // bf16: one of `names`, whose index is the value
    tile,     // 64x32: two values, <name>_m and <name>_n in the source
    flag,     // 0 or 1
};

struct ConstantInfo {
    std::string_view name;
    ConstantKind kind;
    int minimum = 0;  // of an integer, or of both sides of a tile
    int maximum = 0;
    int multiple = 1;
    std::span<const std::string_view> names = {};
    std::uint32_t allowed_names = ~0u;  // bit i: names[i] may be used
    bool omitted_when_zero = false;     // an option that is off is not spelled out
};

struct KernelInfo {
    KernelId id;
    std::string_view name;
    std::string_view source;  // the embedded file that defines the kernel's template
    std::span<const ConstantInfo> constants;
    int minimum_arch;  // 80 for sm_80 and newer
};

std::span<const KernelInfo> kernels() noexcept;
const KernelInfo& info(KernelId id) noexcept;
const KernelInfo* find_kernel(std::string_view name) noexcept;

}  // namespace jitney::policy
