// The registry: every kernel, what it serves, its source, and the constants that a specialization
// of it fixes. The rows are in kernel_rows.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/arch.hpp"

namespace jitney::policy {

// Index into kernels(). It is no part of a text or of a key on disk.
enum class KernelId : std::uint8_t {
#define JITNEY_KERNEL(name, ...) name,
#include "policy/kernel_rows.hpp"
#undef JITNEY_KERNEL
};

// The constants of a specialization by name ("tile_m" and "tile_n" of a tile).
struct Spec;
struct Values {
    const Spec& spec;
    int operator[](std::string_view constant) const noexcept;
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
    std::string_view name = {};
    ConstantKind kind = ConstantKind::integer;
    Range range = {};    // of an integer, or of the first side of a tile
    Range range_n = {};  // of the second side
    std::span<const std::string_view> names = {};
    std::uint32_t allowed_names = ~0u;  // bit i: names[i] may be used
    bool omitted_when_zero = false;     // an option that is off is not spelled out

    bool allows_name(std::size_t i) const noexcept {
        return i < names.size() && (allowed_names >> i & 1) != 0;
    }
};

// The constants of a kernel, in the order in which texts have them.
class ConstantList {
  public:
    static constexpr std::size_t most = 14;

    constexpr ConstantList(std::initializer_list<ConstantInfo> constants)
        : count_(constants.size()) {
        std::ranges::copy(constants, list_.begin());
    }
    constexpr const ConstantInfo* begin() const noexcept { return list_.data(); }
    constexpr const ConstantInfo* end() const noexcept { return list_.data() + count_; }

  private:
    std::array<ConstantInfo, most> list_{};
    std::size_t count_;
};

struct KernelInfo {
    // The operation that it serves, by the name of jitney's call: "attention".
    std::string_view operation;
    std::string_view source;  // the embedded file that defines the kernel's template
    int minimum_arch;         // 80 for sm_80 and newer
    // The only arch that has its instructions; none: every one from the minimum on.
    Arch exact_arch = {};
    bool helper = false;  // runs beside another kernel, and can't be asked for by name
    ConstantList constants;
    // The most dynamic shared memory that a block asks for at launch. Null: it has none.
    int (*shared_bytes)(const Values& of) = nullptr;
    // Why there is no code for values that are allowed one by one; empty where there is. Null:
    // there is for all.
    std::string_view (*why_not)(const Values& of) = nullptr;

    KernelId id = {};            // the row's place,
    std::string_view name = {};  // and what it stands for: set by the registry
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
// The values of head_dim, of a kernel that has that constant.
Range head_dim_range(const KernelInfo& kernel) noexcept;
// Whether the kernel has code for that format (a jitney::Format).
bool takes_format(const KernelInfo& kernel, int format) noexcept;

}  // namespace jitney::policy
