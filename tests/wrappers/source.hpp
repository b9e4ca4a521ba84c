// The kernels of the wrappers' tests, as NVRTC compiles them.
#pragma once

#include <string>

#include "runtime/kernel.hpp"

namespace jitney::wrappers {

// `kernel`: a name of kernels_of(), or one that only a GPU runs.
runtime::KernelSource source_of(const std::string& kernel, const std::string& arch,
                                int shared_bytes = 0);

}  // namespace jitney::wrappers
