// The limits of a launch of a loaded kernel, where not the library but its caller gives the shape.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/kernel.hpp"

namespace jitney::runtime {

// A parameter of a kernel, in the memory that holds all of them.
struct ParameterPlace {
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

struct KernelLimits {
    Dim3 grid;                   // blocks
    Dim3 block;                  // threads
    unsigned block_threads = 0;  // of the device, the kernel's registers and its launch bounds
    unsigned cluster_blocks = 1;
    Dim3 fixed_cluster = {0, 0, 0};  // what the kernel's text declares; zeros: nothing
    // In order; nothing where the driver does not tell (before CUDA 12.4).
    std::optional<std::vector<ParameterPlace>> parameters;
};

// The limits of a kernel that is loaded for the device, whose context is current. With
// `large_clusters` the kernel is let have clusters of more than 8 blocks, for which programs can't
// count on every GPU.
KernelLimits limits_of(const Kernel& kernel, const DeviceInfo& device, bool large_clusters);

}  // namespace jitney::runtime
