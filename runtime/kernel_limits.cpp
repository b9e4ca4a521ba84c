#include "runtime/kernel_limits.hpp"

#include <algorithm>

#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

constexpr unsigned kPortableCluster = 8;
constexpr unsigned kLargestCluster = 16;

unsigned of_device(CUdevice_attribute which, const DeviceInfo& device) {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, device.handle),
          "reading a device attribute");
    return static_cast<unsigned>(std::max(value, 0));
}

unsigned of_kernel(CUfunction_attribute which, const Kernel& kernel, const DeviceInfo& device) {
    int value = 0;
    check(driver().cuKernelGetAttribute(&value, which, kernel.handle, device.handle),
          "reading an attribute of a kernel");
    return static_cast<unsigned>(std::max(value, 0));
}

std::optional<std::vector<ParameterPlace>> parameters_of(const Kernel& kernel) {
    if (driver().cuKernelGetParamInfo == nullptr) return std::nullopt;
    std::vector<ParameterPlace> places;
    std::size_t end = 0;
    // The driver tells how many there are by failing for one too many, which tools that watch its
    // calls report as an error: it is asked that only where the machine code does not tell.
    while (kernel.parameter_bytes < 0 || end < static_cast<std::size_t>(kernel.parameter_bytes)) {
        ParameterPlace place;
        const CUresult result = driver().cuKernelGetParamInfo(kernel.handle, places.size(),
                                                              &place.offset, &place.bytes);
        if (result == CUDA_ERROR_INVALID_VALUE) break;  // there are no more
        if (result != CUDA_SUCCESS) return std::nullopt;
        places.push_back(place);
        end = place.offset + place.bytes;
    }
    return places;
}

}  // namespace

KernelLimits limits_of(const Kernel& kernel, const DeviceInfo& device, bool large_clusters) {
    KernelLimits limits;
    limits.grid = {of_device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, device),
                   of_device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, device),
                   of_device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, device)};
    limits.block = {of_device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, device),
                    of_device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, device),
                    of_device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, device)};
    limits.block_threads = of_kernel(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device);
    if (of_device(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device) != 0) {
        limits.cluster_blocks = large_clusters ? kLargestCluster : kPortableCluster;
        limits.fixed_cluster = {
            of_kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, kernel, device),
            of_kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, kernel, device),
            of_kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, kernel, device)};
        if (large_clusters) {
            check(driver().cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                                1, kernel.handle, device.handle),
                  "letting a kernel have large clusters");
        }
    }
    limits.parameters = parameters_of(kernel);
    return limits;
}

}  // namespace jitney::runtime
