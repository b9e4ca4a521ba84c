// What the kernels of kernels.cuh have to make of what they are given, wherever they run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor_map.hpp"

namespace jitney::wrappers {

using Words = std::vector<unsigned>;

// One launch: the kernel's name as C++ has it, within jitney::wrappers.
struct Call {
    std::string kernel;
    unsigned blocks = 1;
    unsigned threads = 32;
    unsigned cluster = 1;  // blocks
    int shared_bytes = 0;
    Words in = {};
    Words out = {};  // as it is before the launch
    // Of a kernel that takes two tensor maps before the other parameters: of tensors of this shape
    // within `in` and within `out`, which begin behind kHeaderWords.
    std::optional<runtime::TensorMapShape> tensor = {};
};
constexpr std::size_t kHeaderWords = 64;

// What `out` is after it.
using Run = std::function<Words(const Call& call)>;

// `arch`: of the GPU, or of the one that is imitated: 80, 90...
struct Case {
    const char* name;
    int least_arch;
    void (*check)(const Run& run, int arch);
    int only_arch = 0;  // the one that has the instructions, where no later one does
    // No GPU has been seen to pass it: one is asked with JITNEY_GPU_TESTS=all alone.
    bool unseen = false;

    bool runs_on(int arch) const {
        return arch >= least_arch && (only_arch == 0 || arch == only_arch);
    }
};
const std::vector<Case>& cases();
const std::vector<Case>& hopper_cases();       // of them those of hopper_kernels.cuh
const std::vector<Case>& tensor_copy_cases();  // and those of tensor_copy_kernels.cuh

// The names of all kernels that such a GPU has instructions for.
std::vector<std::string> kernels_of(int arch);
std::vector<std::string> hopper_kernels_of(int arch);
std::vector<std::string> tensor_copy_kernels_of(int arch);

}  // namespace jitney::wrappers
