// The sources that these tests compile, in place of those of kernel_sources.
#include <array>

#include "kernel_sources/embedded.hpp"

namespace jitney::kernel_sources {
namespace {

constexpr std::array<EmbeddedSource, 4> kSources = {{
    {"tiny/base.cuh", "#pragma once\n__device__ inline float twice(float x) { return x + x; }\n"},
    {"tiny/scale.cuh",
     "#pragma once\n#include \"tiny/base.cuh\"\n"
     "template <int N>\n__global__ void scale(float* x) {\n"
     "    x[threadIdx.x] = N * twice(x[threadIdx.x]);\n}\n"},
    {"tiny/toolkit.cuh", "#include <cuda_fp16.h>\n"},
    {"tiny/unused.cuh", "#pragma once\n"},
}};

}  // namespace

std::span<const EmbeddedSource> embedded_sources() noexcept {
    return kSources;
}

}  // namespace jitney::kernel_sources
