// The CUDA driver: libcuda.so.1, opened on first use. A machine without one is a state, not an
// error, until something needs a GPU. The names are those of cuda.h, whose macros choose the
// versioned symbols (cuMemAlloc is cuMemAlloc_v2) that fit the types compiled here.
#pragma once

#include <cuda.h>

#include <atomic>
#include <string>
#include <vector>

namespace jitney::runtime {

// The oldest driver that will do: CUDA 12.0 brought cuLibraryLoadData, cuLaunchKernelEx on
// CUkernel, cuStreamGetId and cuTensorMapEncodeTiled.
inline constexpr int kMinimumDriverVersion = 12000;

#define JITNEY_DRIVER_FUNCTIONS(X)       \
    X(cuInit)                            \
    X(cuDriverGetVersion)                \
    X(cuGetErrorName)                    \
    X(cuGetErrorString)                  \
    X(cuDeviceGetCount)                  \
    X(cuDeviceGet)                       \
    X(cuDeviceGetName)                   \
    X(cuDeviceGetAttribute)              \
    X(cuDeviceTotalMem)                  \
    X(cuDevicePrimaryCtxRetain)          \
    X(cuCtxGetCurrent)                   \
    X(cuCtxSetCurrent)                   \
    X(cuCtxPushCurrent)                  \
    X(cuCtxPopCurrent)                   \
    X(cuCtxGetDevice)                    \
    X(cuCtxGetId)                        \
    X(cuCtxSynchronize)                  \
    X(cuLibraryLoadData)                 \
    X(cuLibraryUnload)                   \
    X(cuLibraryGetKernel)                \
    X(cuKernelGetFunction)               \
    X(cuKernelGetAttribute)              \
    X(cuKernelSetAttribute)              \
    X(cuLaunchKernelEx)                  \
    X(cuStreamCreate)                    \
    X(cuStreamDestroy)                   \
    X(cuStreamSynchronize)               \
    X(cuStreamGetId)                     \
    X(cuStreamIsCapturing)               \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuMemAlloc)                        \
    X(cuMemFree)                         \
    X(cuMemAllocAsync)                   \
    X(cuMemFreeAsync)                    \
    X(cuMemGetInfo)                      \
    X(cuMemcpyHtoDAsync)                 \
    X(cuMemcpyDtoHAsync)                 \
    X(cuMemcpyDtoDAsync)                 \
    X(cuMemsetD8Async)                   \
    X(cuMemsetD32Async)                  \
    X(cuPointerGetAttributes)            \
    X(cuTensorMapEncodeTiled)

// Functions that newer drivers have, and those that tests and benchmarks use beside: null where the
// driver lacks them.
#define JITNEY_OPTIONAL_DRIVER_FUNCTIONS(X) \
    X(cuKernelGetParamInfo)                 \
    X(cuEventCreate)                        \
    X(cuEventDestroy)                       \
    X(cuEventRecord)                        \
    X(cuEventSynchronize)                   \
    X(cuEventElapsedTime)                   \
    X(cuStreamBeginCapture)                 \
    X(cuStreamEndCapture)                   \
    X(cuGraphInstantiateWithFlags)          \
    X(cuGraphLaunch)                        \
    X(cuGraphExecDestroy)                   \
    X(cuGraphDestroy)                       \
    X(cuDeviceGetUuid)

struct Driver {
#define JITNEY_MEMBER(function) decltype(&::function) function = nullptr;
    JITNEY_DRIVER_FUNCTIONS(JITNEY_MEMBER)
    JITNEY_OPTIONAL_DRIVER_FUNCTIONS(JITNEY_MEMBER)
#undef JITNEY_MEMBER
};

// What came of looking for a driver, for whoever wants to explain it.
struct DriverStatus {
    bool usable = false;
    std::string path;  // of the library; empty where none was found
    std::string how;   // which step of the search found it
    int version = 0;   // the newest CUDA that it supports: 13000 is 13.0; 0 unknown
    int device_count = 0;
    std::string problem;  // one sentence, where it is not usable
};

const DriverStatus& driver_status();

// The newest CUDA that the driver supports, asked without starting it; 0 where there is none.
int driver_version();

// For a person: the driver libraries that stand before the one that is used and are not trusted,
// each with the reason and the mend.
std::vector<std::string> refused_drivers();

// Whether there are a driver and a GPU.
inline bool driver_available() {
    return driver_status().usable;
}

namespace detail {
extern std::atomic<const Driver*> usable_driver;
const Driver& need_driver();
[[noreturn]] void throw_driver_error(CUresult result, const char* what);
}  // namespace detail

// Throws Error (no_device) with the reason where there is none.
inline const Driver& driver() {
    const Driver* table = detail::usable_driver.load(std::memory_order_acquire);
    return table != nullptr ? *table : detail::need_driver();
}

// Throws Error where the result is not success; `what` names the call or the purpose.
inline void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) [[unlikely]]
        detail::throw_driver_error(result, what);
}

// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
std::string describe(CUresult result);

// "13.0" for 13000.
std::string version_text(int cuda_version);

}  // namespace jitney::runtime
