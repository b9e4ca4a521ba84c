// Puts a kernel into a stream.
#pragma once

#include "jitney/tensor.hpp"
#include "runtime/kernel.hpp"

namespace jitney::runtime {

// `parameters` points to the address of each kernel parameter. Asynchronous, in the calling
// thread's current context, which must be of the device that the kernel was loaded for.
void launch(const Kernel& kernel, const LaunchShape& shape, void** parameters, Stream stream);

}  // namespace jitney::runtime
