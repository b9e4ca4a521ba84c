#include "runtime/launch.hpp"

#include <fmt/format.h>

#include <array>

#include "jitney/error.hpp"
#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

[[noreturn]] void throw_launch_error(CUresult result, const LaunchShape& shape) {
    const std::string what = fmt::format(
        "launching a kernel of {}x{}x{} blocks of {}x{}x{} threads, clusters of {}x{}x{}, {} bytes "
        "of shared memory",
        shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
        shape.cluster.x, shape.cluster.y, shape.cluster.z, shape.shared_bytes);
    detail::throw_driver_error(result, what.c_str());
}

// One of `parameters` and `extra` is null.
void put(const Kernel& kernel, const LaunchShape& shape, void** parameters, void** extra,
         Stream stream) {
    std::array<CUlaunchAttribute, 2> attributes;
    unsigned count = 0;
    if (shape.cluster != Dim3{}) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = shape.cluster.x;
        attribute.value.clusterDim.y = shape.cluster.y;
        attribute.value.clusterDim.z = shape.cluster.z;
    }
    if (shape.programmatic_dependent) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    CUlaunchConfig config{};
    config.gridDimX = shape.grid.x;
    config.gridDimY = shape.grid.y;
    config.gridDimZ = shape.grid.z;
    config.blockDimX = shape.block.x;
    config.blockDimY = shape.block.y;
    config.blockDimZ = shape.block.z;
    config.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
    config.hStream = stream;
    config.attrs = count != 0 ? attributes.data() : nullptr;
    config.numAttrs = count;
    // The driver takes a CUkernel here, and finds its function of the current context.
    const CUresult result = driver().cuLaunchKernelEx(
        &config, reinterpret_cast<CUfunction>(kernel.handle), parameters, extra);
    if (result != CUDA_SUCCESS) [[unlikely]]
        throw_launch_error(result, shape);
}

}  // namespace

void launch(const Kernel& kernel, const LaunchShape& shape, void** parameters, Stream stream) {
    put(kernel, shape, parameters, nullptr, stream);
}

void launch_packed(const Kernel& kernel, const LaunchShape& shape, const void* parameters,
                   std::size_t bytes, Stream stream) {
    std::array<void*, 5> extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<void*>(parameters),
                                  CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    put(kernel, shape, nullptr, extra.data(), stream);
}

}  // namespace jitney::runtime
