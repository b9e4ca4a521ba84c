// The cold path of one kernel: the cache on disk, then NVRTC, then the driver.
#pragma once

#include <cstdint>

#include "runtime/kernel.hpp"

namespace jitney::runtime {

struct ColdLoad {
    CUkern_st* handle = nullptr;
    int parameter_bytes = -1;    // as in Kernel
    bool compiled = false;       // by this process, just now
    std::uint64_t rejected = 0;  // entries that the driver would not take
};

// Loads the kernel into the current context. Throws Error: not_cached where compiling is
// forbidden, no_compiler, compile_failed, driver.
ColdLoad cold_load(const KernelSource& source);

}  // namespace jitney::runtime
