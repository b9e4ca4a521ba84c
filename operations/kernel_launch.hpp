// From a specialization to a launch: the steps that all operations share.
#pragma once

#include <optional>

#include "jitney/tensor.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel.hpp"

namespace jitney {

// The GPU of the calling thread's context, which must be the tensors'. Where the thread has no
// context, the primary one of the tensors' GPU is lent to the call (runtime::BorrowedThread).
const runtime::DeviceInfo& enter_device(const Device& device);

policy::DeviceFacts facts_of(const runtime::DeviceInfo& device) noexcept;

// The texts that make a specialization.
runtime::KernelSource source_of(const policy::Spec& spec);

// The loaded kernel; a table look-up after the first call.
const runtime::Kernel& load_kernel(const policy::Spec& spec, const runtime::DeviceInfo& device,
                                   Stream stream);

// `params` is the kernel's only parameter.
void launch_kernel(const runtime::Kernel& kernel, const policy::Geometry& geometry, void* params,
                   Stream stream);

// Writes the number, where there is one to write, without a kernel.
void set_number(const std::optional<Tensor>& number, float value, Stream stream);

}  // namespace jitney
