// The limits that a launch of a caller's kernel is held to, before anything is launched.
#pragma once

#include <cstddef>
#include <span>

#include "api/own_kernel.hpp"

namespace jitney {

struct OwnLaunch {
    const detail::OwnKernel& own;
    const detail::LoadedOwnKernel& loaded;  // on the device
    const runtime::DeviceInfo& device;
    const KernelLaunch& shape;
};

// They throw Error (invalid_argument), and run with every launch. What parameters there are is not
// known of all drivers; then none are refused.
void check_shape(const OwnLaunch& launch);
void check_values(const OwnLaunch& launch, std::span<const void* const> values,
                  std::span<const std::size_t> sizes);
void check_packed(const OwnLaunch& launch, std::size_t bytes);

}  // namespace jitney
