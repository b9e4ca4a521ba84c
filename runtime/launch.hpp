// Puts a kernel into a stream.
#pragma once

#include <cstddef>

#include "jitney/tensor.hpp"
#include "runtime/kernel.hpp"

namespace jitney::runtime {

// `parameters` points to the address of each kernel parameter. Asynchronous, in the calling
// thread's current context, which must be of the device that the kernel was loaded for.
void launch(const Kernel& kernel, const LaunchShape& shape, void** parameters, Stream stream);

// The same, with the parameters' bytes as they lie behind each other in the kernel's memory.
void launch_packed(const Kernel& kernel, const LaunchShape& shape, const void* parameters,
                   std::size_t bytes, Stream stream);

}  // namespace jitney::runtime
