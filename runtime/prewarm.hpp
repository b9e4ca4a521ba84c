// Fills the cache on disk ahead of use: needs NVRTC, and no GPU.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/kernel.hpp"

namespace jitney::runtime {

enum class PrewarmStatus { compiled, cached, failed };

struct PrewarmResult {
    PrewarmStatus status = PrewarmStatus::failed;
    double milliseconds = 0;
    std::size_t bytes = 0;  // of the image
    std::string error;      // one sentence, where it failed
    std::string log;        // NVRTC's, where it has something to say
};

// Never throws. Safe to call from many threads at once: NVRTC compiles in parallel.
PrewarmResult prewarm(const KernelSource& source) noexcept;

}  // namespace jitney::runtime
