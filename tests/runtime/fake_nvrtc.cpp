// A compiler that compiles nothing: built as a library, opened through JITNEY_LIBNVRTC. Its
// "cubin" holds the options and the source. The environment steers it:
//   FAKE_NVRTC_VERSION     13.0 unless set
//   FAKE_NVRTC_ARCHS       75,80,89,90,100,120 unless set
//   FAKE_NVRTC_COMPILES    a file that gets one line a compile
//   FAKE_NVRTC_DELAY_MS    how long one compile takes
//   FAKE_NVRTC_BUILTINS    missing: no compile finds its builtins library
//   FAKE_NVRTC_FAIL_WHILE  a file; compiles fail as long as it exists
//   FAKE_NVRTC_SEED        unknown: --frandom-seed is no option of its
//   FAKE_NVRTC_MEDDLES     1: every compile leaves the thread another locale, floating-point
//                          environment, errno and current context, and tells what it found
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cerrno>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/fake_cubin.hpp"

struct _nvrtcProgram {
    std::string source;
    std::string function;
    std::string options;
    std::string log;
    std::string lowered;
};

namespace {

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

std::vector<int> archs() {
    std::vector<int> found;
    const std::string text = variable("FAKE_NVRTC_ARCHS", "75,80,89,90,100,120");
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        found.push_back(std::stoi(text.substr(at, end - at)));
        at = end + 1;
    }
    return found;
}

void count_compile(const std::string& options) {
    const std::string path = variable("FAKE_NVRTC_COMPILES", "");
    if (path.empty()) return;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string line = options + "\n";
    if (file >= 0 && write(file, line.data(), line.size()) < 0) std::perror("fake NVRTC");
    close(file);
}

// As one who believes that the thread is its own. The driver is that of the process.
void meddle() {
    std::printf("found by the compiler: %d byte a character, rounding %d\n",
                static_cast<int>(MB_CUR_MAX), std::fegetround());
    uselocale(newlocale(LC_ALL_MASK, "C", nullptr));
    std::fesetround(FE_DOWNWARD);
    errno = ENOTRECOVERABLE;
    if (void* driver = dlopen(std::getenv("JITNEY_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD)) {
        const auto push =
            reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxSetCurrent"));
        const auto retain = reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(
            dlsym(driver, "cuDevicePrimaryCtxRetain"));
        CUcontext other = nullptr;
        if (retain(&other, 2) == CUDA_SUCCESS) push(other);
    }
}

std::string ptx_of(const _nvrtcProgram& program) {
    return "// " + program.options + "\n.version 9.0\n" + program.source;
}

// As large as those of real kernels, and sealed, so that a driver that is given less, or other
// bytes, notices (fake_cubin.hpp).
std::string cubin_of(const _nvrtcProgram& program) {
    return fake::sealed_cubin(program.options + program.source);
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
    std::sscanf(variable("FAKE_NVRTC_VERSION", "13.0").c_str(), "%d.%d", major, minor);
    return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult) {
    return "what the fake says";
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
    *count = static_cast<int>(archs().size());
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* values) {
    const std::vector<int> found = archs();
    std::copy(found.begin(), found.end(), values);
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
    *program = new _nvrtcProgram{source, {}, {}, {}, {}};
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
    delete *program;
    *program = nullptr;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* function) {
    program->function = function;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
    for (int i = 0; i < count; ++i)
        program->options += std::string(options[i]) + ' ';
    if (variable("FAKE_NVRTC_MEDDLES", "") == "1") meddle();
    count_compile(program->options);
    if (variable("FAKE_NVRTC_SEED", "") == "unknown" &&
        program->options.find("--frandom-seed") != std::string::npos) {
        program->log = "nvrtc: error: unrecognized option --frandom-seed=0 found\n";
        return NVRTC_ERROR_INVALID_OPTION;
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::stoi(variable("FAKE_NVRTC_DELAY_MS", "0"))));
    if (variable("FAKE_NVRTC_BUILTINS", "") == "missing") {
        program->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.";
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    const std::string failing = variable("FAKE_NVRTC_FAIL_WHILE", "");
    if (!failing.empty() && access(failing.c_str(), F_OK) == 0) {
        program->log = "jitney.cu(1): error: the fake was told to fail\n";
        return NVRTC_ERROR_COMPILATION;
    }
    program->lowered = "_Zlowered_" + program->function;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* bytes) {
    *bytes = ptx_of(*program).size() + 1;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) {
    std::strcpy(text, ptx_of(*program).c_str());
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* bytes) {
    *bytes = cubin_of(*program).size();
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* bytes) {
    const std::string cubin = cubin_of(*program);
    std::memcpy(bytes, cubin.data(), cubin.size());
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* bytes) {
    *bytes = program->log.size() + 1;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* text) {
    std::strcpy(text, program->log.c_str());
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char*, const char** name) {
    *name = program->lowered.c_str();
    return NVRTC_SUCCESS;
}

}  // extern "C"
