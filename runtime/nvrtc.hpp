// NVRTC, opened only when something has to be compiled.
#pragma once

#include <nvrtc.h>

#include <optional>
#include <string>
#include <vector>

namespace jitney::runtime {

struct CompilerVersion {
    int major = 0;
    int minor = 0;
    std::string text() const;  // as cache entries name it: "nvrtc13.0"
    friend bool operator==(const CompilerVersion&, const CompilerVersion&) = default;
};

struct NvrtcLocation {
    std::string path;
    std::string how;                         // which step of the search found it
    std::optional<CompilerVersion> version;  // where file names tell it
};

// Where NVRTC would be opened from; finding it opens no NVRTC. Nothing where there is none.
const std::optional<NvrtcLocation>& nvrtc_location();

// For a person: the NVRTCs that stand before the one that is used (all, where `used` is empty) and
// are not trusted, each with the reason and the mend; and those that were passed over because the
// driver is older than their CUDA.
std::vector<std::string> refused_nvrtc(const std::string& used);
std::vector<std::string> passed_over_nvrtc(const std::string& used);

// The version that a library's file name tells (libnvrtc.so.13.0.48), or that of the builtins
// library beside it (libnvrtc-builtins.so.13.0).
std::optional<CompilerVersion> version_from_file_name(const std::string& path);

#define JITNEY_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion)               \
    X(nvrtcGetErrorString)        \
    X(nvrtcGetNumSupportedArchs)  \
    X(nvrtcGetSupportedArchs)     \
    X(nvrtcCreateProgram)         \
    X(nvrtcDestroyProgram)        \
    X(nvrtcCompileProgram)        \
    X(nvrtcGetPTXSize)            \
    X(nvrtcGetPTX)                \
    X(nvrtcGetCUBINSize)          \
    X(nvrtcGetCUBIN)              \
    X(nvrtcGetProgramLogSize)     \
    X(nvrtcGetProgramLog)         \
    X(nvrtcAddNameExpression)     \
    X(nvrtcGetLoweredName)

struct Nvrtc {
#define JITNEY_MEMBER(function) decltype(&::function) function = nullptr;
    JITNEY_NVRTC_FUNCTIONS(JITNEY_MEMBER)
#undef JITNEY_MEMBER
    std::string path;
    CompilerVersion version;
    std::vector<int>
        archs;  // the compute capabilities it compiles for, as 10 * major + minor, sorted
};

// Opens NVRTC the first time. Throws Error (no_compiler) that says what was tried and what to do.
const Nvrtc& nvrtc();

}  // namespace jitney::runtime
