// What the kernels of kernels.cuh have to make of what they are given, wherever they run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace jitney::wrappers {

using Words = std::vector<unsigned>;

// One launch: the kernel's name as C++ has it, within jitney::wrappers.
struct Call {
    std::string kernel;
    unsigned blocks = 1;
    unsigned threads = 32;
    int shared_bytes = 0;
    Words in = {};
    Words out = {};  // as it is before the launch
};
// What `out` is after it.
using Run = std::function<Words(const Call& call)>;

// `arch`: of the GPU, or of the one that is imitated: 80, 90...
struct Case {
    const char* name;
    int least_arch;
    void (*check)(const Run& run, int arch);
};
const std::vector<Case>& cases();

// The names of all kernels that such a GPU has instructions for.
std::vector<std::string> kernels_of(int arch);

}  // namespace jitney::wrappers
