#include "runtime/image.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "jitney/error.hpp"
#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

// Failures that are the entry's: another entry, or a new compile, may fare better.
bool is_rejection(CUresult result) {
    switch (result) {
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        case CUDA_ERROR_INVALID_SOURCE:
        case CUDA_ERROR_FILE_NOT_FOUND:
        case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
        case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
        case CUDA_ERROR_NOT_FOUND:
        case CUDA_ERROR_NOT_SUPPORTED:
            return true;
        default:
            return false;
    }
}

// What the driver's own compiler says of a PTX.
struct JitLog {
    std::array<char, 2048> text{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                           CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values = {text.data(),
                                   reinterpret_cast<void*>(std::uintptr_t{text.size() - 1})};
};

CUresult load(const cache::Entry& entry, JitLog& log, CUlibrary* library, CUkernel* kernel) {
    const Driver& cuda = driver();
    const bool is_ptx = entry.kind == cache::PayloadKind::ptx;
    CUresult result = cuda.cuLibraryLoadData(
        library, entry.payload.c_str(), is_ptx ? log.options.data() : nullptr,
        is_ptx ? log.values.data() : nullptr,
        is_ptx ? static_cast<unsigned>(log.options.size()) : 0u, nullptr, nullptr, 0);
    if (result != CUDA_SUCCESS) {
        *library = nullptr;
        return result;
    }
    result = cuda.cuLibraryGetKernel(kernel, *library, entry.lowered_name.c_str());
    if (result != CUDA_SUCCESS) return result;
    // Drivers load lazily: only this brings the code to the device, and out the driver's
    // objections.
    CUfunction function = nullptr;
    return cuda.cuKernelGetFunction(&function, *kernel);
}

}  // namespace

CUkern_st* load_image(const cache::Entry& entry, Rejection* rejection) {
    JitLog log;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    const CUresult result = load(entry, log, &library, &kernel);
    if (result == CUDA_SUCCESS) return kernel;
    if (library != nullptr) driver().cuLibraryUnload(library);
    if (!is_rejection(result)) check(result, "loading a compiled kernel");
    rejection->reason = describe(result);
    if (log.text[0] != '\0') rejection->reason += fmt::format(": {}", log.text.data());
    return nullptr;
}

Kernel prepare_kernel(CUkern_st* handle, int shared_bytes, const DeviceInfo& device,
                      const std::string& specialization) {
    const Driver& cuda = driver();
    Kernel kernel;
    kernel.handle = handle;
    kernel.shared_bytes = shared_bytes;
    const auto read = [&](int& value, CUfunction_attribute which, const char* what) {
        check(cuda.cuKernelGetAttribute(&value, which, handle, device.handle), what);
    };
    read(kernel.static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
         "reading the shared memory of a kernel");
    if (shared_bytes > device.shared_bytes_per_block - kernel.static_shared_bytes) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} needs {} bytes of shared memory a block, and {} (GPU {}) has "
                                "{}: choose a smaller tile",
                                specialization, shared_bytes + kernel.static_shared_bytes,
                                device.name, device.ordinal, device.shared_bytes_per_block));
    }
    if (shared_bytes > 0) {
        check(cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        shared_bytes, handle, device.handle),
              "granting shared memory to a kernel");
    }
    CUfunction function = nullptr;
    check(cuda.cuKernelGetFunction(&function, handle), "bringing a kernel to the device");
    read(kernel.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, "reading the registers of a kernel");
    read(kernel.local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
         "reading the local memory of a kernel");
    return kernel;
}

}  // namespace jitney::runtime
