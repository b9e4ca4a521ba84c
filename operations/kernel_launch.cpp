#include "operations/kernel_launch.hpp"

#include <fmt/format.h>

#include <bit>

#include "jitney/error.hpp"
#include "operations/logits_access.hpp"
#include "runtime/driver.hpp"
#include "runtime/launch.hpp"
#include "runtime/runtime.hpp"

namespace jitney {
namespace {

runtime::KernelSource describe(const void*, const runtime::KernelKey& key) {
    return source_of(std::bit_cast<policy::Spec>(key));
}

runtime::Dim3 dim3(const std::array<unsigned, 3>& sizes) noexcept {
    return {sizes[0], sizes[1], sizes[2]};
}

[[noreturn]] void throw_other_device(const Device& device, const runtime::DeviceInfo& current) {
    throw Error(ErrorCode::no_device,
                fmt::format("the tensors are on GPU {} and the current context is of GPU {} ({}): "
                            "make a context of GPU {} current, or correct the tensors' device",
                            device.index, current.ordinal, current.name, device.index));
}

}  // namespace

const runtime::DeviceInfo& enter_device(const Device& device) {
    const runtime::DeviceInfo& current = runtime::current_device(device.index);
    if (current.ordinal != device.index) throw_other_device(device, current);
    return current;
}

policy::DeviceFacts facts_of(const runtime::DeviceInfo& device) noexcept {
    policy::DeviceFacts facts;
    facts.arch = arch_of_capability(device.major, device.minor);
    facts.sm_count = device.multiprocessors;
    facts.shared_bytes_per_block = device.shared_bytes_per_block;
    facts.shared_bytes_per_sm = device.shared_bytes_per_multiprocessor;
    return facts;
}

runtime::KernelSource source_of(const policy::Spec& spec) {
    runtime::KernelSource source;
    source.specialization = policy::text_of(spec);
    source.arch = spec.arch().text();
    const LogitsSource& logits = logits_source(policy::logits_digest(spec), source.specialization);
    source.translation_unit = policy::translation_unit(spec, logits.compiled);
    if (logits.key != logits.compiled) source.key_unit = policy::translation_unit(spec, logits.key);
    source.function = policy::function_name(spec);
    source.shared_bytes = policy::shared_bytes(spec);
    return source;
}

const runtime::Kernel& load_kernel(const policy::Spec& spec, const runtime::DeviceInfo& device,
                                   Stream stream) {
    const auto key = std::bit_cast<runtime::KernelKey>(spec);
    return runtime::runtime().kernel(key, device.ordinal, {&describe, nullptr}, stream);
}

void launch_kernel(const runtime::Kernel& kernel, const policy::Geometry& geometry, void* params,
                   Stream stream) {
    runtime::LaunchShape shape;
    shape.grid = dim3(geometry.grid);
    shape.block = dim3(geometry.block);
    shape.cluster = dim3(geometry.cluster);
    shape.shared_bytes = geometry.shared_bytes;
    shape.programmatic_dependent = geometry.programmatic;
    std::array<void*, 1> parameters{params};
    runtime::launch(kernel, shape, parameters.data(), stream);
}

void set_number(const std::optional<Tensor>& number, float value, Stream stream) {
    if (!number) return;
    runtime::check(runtime::driver().cuMemsetD32Async(std::bit_cast<CUdeviceptr>(number->data),
                                                      std::bit_cast<unsigned>(value), 1, stream),
                   "writing a number to the GPU");
}

}  // namespace jitney
