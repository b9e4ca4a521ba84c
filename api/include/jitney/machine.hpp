// The means of this machine to compile and to run kernels, and what is wrong with them: what
// `jitney doctor` shows. Nothing here throws for what is missing or broken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jitney/error.hpp"

namespace jitney {

// A library that is opened at run time.
struct LibraryState {
    std::string path;  // empty: none was found
    std::string how;   // which step of the search found it
    bool usable = false;
    bool asked_for = false;            // a variable of the environment names one
    std::string version;               // of CUDA: "13.0"; empty: not known
    int major = 0;                     // its first part
    std::string problem;               // a sentence, where it is not usable
    std::vector<std::string> refused;  // sentences on those before it that are not trusted
};

struct CompilerState : LibraryState {
    std::string builtins;                  // the library that has to be beside it; empty: it is not
    std::vector<int> capabilities;         // 10 * major + minor of the GPUs that it knows, sorted
    std::vector<std::string> archs;        // of them, those that some kernel runs on: "sm_90a"
    std::vector<std::string> passed_over;  // newer ones, whose CUDA the driver does not load
    std::string compile_problem;           // of a kernel that does nothing; empty: it compiles
    bool switched_off = false;             // by JITNEY_JIT
};

struct DriverState : LibraryState {
    int gpus = 0;
    bool without_gpu = false;  // usable but for that
};

// Opens NVRTC, and compiles with it.
JITNEY_API CompilerState compiler_state();
JITNEY_API DriverState driver_state();
// 10 * major + minor of the oldest GPU that any kernel runs on.
JITNEY_API int oldest_capability();
// Why JITNEY_NUM_THREADS has no effect on the reference backend; empty where it has one or is
// unset.
JITNEY_API std::string thread_count_problem();

}  // namespace jitney
