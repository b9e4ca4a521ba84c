// The caller's kernel that a jitney::Kernel stands for, as the rest of this room sees it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/arch.hpp"
#include "jitney/kernel.hpp"
#include "runtime/kernel.hpp"
#include "runtime/kernel_limits.hpp"

namespace jitney {
namespace detail {

// A kernel on a GPU, with all that a launch is held to.
struct LoadedOwnKernel {
    runtime::Kernel kernel;
    runtime::KernelLimits limits;
};

struct OwnKernel {
    KernelCode code;     // as it was checked: lines end in '\n', constants and headers are sorted
    std::string digest;  // 32 hexadecimal digits, of all that is compiled
    std::string unit;    // the constants, and the text under its own lines
    std::uint64_t number = 0;              // in this process
    std::vector<runtime::Header> headers;  // given, or named by a text and missing

    // By the GPU's number; filled one by one, and never emptied.
    mutable std::array<std::atomic<const LoadedOwnKernel*>, runtime::kMaxDevices> loaded{};
};

}  // namespace detail

// The one that stands for such code in this process. Throws Error (invalid_argument).
const detail::OwnKernel* own_kernel_of(const KernelCode& code);

std::string spec_of(const detail::OwnKernel& kernel, const Arch& arch);
runtime::KernelSource source_of(const detail::OwnKernel& kernel, const Arch& arch);
// No other kernel has it, and no specialization: those have the number of a kernel of the registry
// where this has none.
runtime::KernelKey key_of(const detail::OwnKernel& kernel, const Arch& arch) noexcept;

// The arch that it is compiled for on a GPU of that compute capability.
Arch arch_on(const detail::OwnKernel& kernel, int major, int minor) noexcept;
// The arch of that name, for which some GPU would look for it. Throws Error (invalid_argument).
Arch arch_named(const detail::OwnKernel& kernel, std::string_view text);

struct KernelAccess {
    static const detail::OwnKernel& own(const Kernel& kernel) noexcept { return *kernel.kernel_; }
    static Kernel of(const detail::OwnKernel* own) noexcept { return Kernel(own); }
};

}  // namespace jitney
