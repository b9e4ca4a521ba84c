#include "tests/wrappers/source.hpp"

namespace jitney::wrappers {
namespace {

constexpr const char* kKernels =
#include "tests/wrappers/kernels.inc"
    ;
constexpr const char* kHopperKernels =
#include "tests/wrappers/hopper_kernels.inc"
    ;
constexpr const char* kTensorCopyKernels =
#include "tests/wrappers/tensor_copy_kernels.inc"
    ;
constexpr const char* kGpuKernels =
#include "tests/wrappers/gpu_kernels.inc"
    ;

// Formats are named with their own namespace.
std::string function_of(const std::string& kernel) {
    std::string name = "jitney::wrappers::";
    char before = '\0';
    for (const char letter : kernel) {
        if (letter == 'k' && (before == '<' || before == ' ')) name += "jitney::";
        name += letter;
        before = letter;
    }
    return name;
}

}  // namespace

runtime::KernelSource source_of(const std::string& kernel, const std::string& arch,
                                int shared_bytes) {
    runtime::KernelSource source;
    source.specialization = "wrapper " + kernel + " @" + arch;
    source.arch = arch;
    source.translation_unit =
        std::string(kKernels) + kHopperKernels + kTensorCopyKernels + kGpuKernels;
    source.function = function_of(kernel);
    source.shared_bytes = shared_bytes;
    return source;
}

}  // namespace jitney::wrappers
