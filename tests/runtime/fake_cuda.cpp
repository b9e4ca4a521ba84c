#include "tests/runtime/fake_cuda.hpp"

#include <cuda.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "tests/runtime/fake_cubin.hpp"

namespace {

constexpr int kMostDevices = 16;
constexpr int kMostSharedBytes = 227 * 1024;

// Its one kernel is told by the library's own address.
struct Library {
    std::string image;
    std::array<int, kMostDevices> granted{};  // bytes of shared memory, by the device's ordinal
};

std::mutex mutex;
std::deque<Library> libraries;
thread_local std::vector<int> contexts;  // of the thread: devices, the current one last
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
std::atomic<std::uint64_t> next_address{0x700000000000};

const char* variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

// "90,80" -> {90, 80}
const std::vector<int>& capabilities() {
    static const std::vector<int> all = [] {
        std::vector<int> found;
        const std::string text = variable("FAKE_CUDA_DEVICES", "90");
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find(',', at), text.size());
            found.push_back(std::stoi(text.substr(at, end - at)));
            at = end + 1;
        }
        return found;
    }();
    return all;
}

// Contexts and devices are told apart by their addresses and numbers; handles are ordinals + 1, so
// that a reader who takes one for the other is found out.
CUcontext context_of(int ordinal) {
    static std::array<int, kMostDevices> places{};
    return reinterpret_cast<CUcontext>(&places[static_cast<std::size_t>(ordinal)]);
}

int ordinal_of(CUcontext context) {
    for (int i = 0; i < kMostDevices; ++i) {
        if (context_of(i) == context) return i;
    }
    return -1;
}

int capability_of(CUdevice handle) {
    return capabilities().at(static_cast<std::size_t>(handle - 1));
}

bool is_device(CUdevice handle) {
    return handle >= 1 && handle <= static_cast<int>(capabilities().size());
}

// Null where the handle is of no kernel.
template <class Handle>
Library* library_of(Handle handle) {
    const std::lock_guard lock(mutex);
    for (Library& library : libraries) {
        if (reinterpret_cast<Handle>(&library) == handle) return &library;
    }
    return nullptr;
}

CUresult result_of(int value) {
    return static_cast<CUresult>(value);
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes);

bool has_memory() {
    static const bool has = std::strcmp(variable("FAKE_CUDA_MEMORY", ""), "host") == 0;
    return has;
}

void* pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

void copy(void* to, const void* from, std::size_t bytes) {
    if (has_memory()) std::memcpy(to, from, bytes);
}

// As a driver whose libraries think that the thread is theirs.
void meddle(bool with_context) {
    if (std::strcmp(variable("FAKE_CUDA_MEDDLES", ""), "1") != 0) return;
    std::printf("the driver meddles\n");
    uselocale(newlocale(LC_ALL_MASK, "C", nullptr));
    std::fesetround(FE_TOWARDZERO);
    errno = ENOTRECOVERABLE;
    if (with_context) contexts = {1};
}

void release(CUdeviceptr address) {
    if (has_memory()) std::free(pointer(address));
}

}  // namespace

extern "C" {

fake::Cuda fake_cuda;

CUresult cuInit(unsigned) {
    ++fake_cuda.inits;
    meddle(false);
    return result_of(std::atoi(variable("FAKE_CUDA_INIT", "0")));
}
CUresult cuDriverGetVersion(int* version) {
    *version = std::atoi(variable("FAKE_CUDA_VERSION", "13000"));
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
    switch (error) {
        case CUDA_ERROR_INVALID_IMAGE:
            *text = "CUDA_ERROR_INVALID_IMAGE";
            break;
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
            *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
            break;
        case CUDA_ERROR_ILLEGAL_ADDRESS:
            *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
            break;
        case CUDA_ERROR_OUT_OF_MEMORY:
            *text = "CUDA_ERROR_OUT_OF_MEMORY";
            break;
        default:
            *text = nullptr;
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "what the fake says";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    *count = static_cast<int>(capabilities().size());
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* handle, int ordinal) {
    *handle = ordinal + 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice handle) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *value = capability_of(handle) / 10;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *value = capability_of(handle) % 10;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            *value = kMostSharedBytes;
            break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = 132;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
            *value = 0x7fffffff;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            *value = 65535;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
            *value = 1024;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
            *value = 64;
            break;
        case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
            *value = capability_of(handle) >= 90;
            break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
            *value = fake_cuda.memory_pools;
            break;
        default:
            *value = 1;
    }
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
    *bytes = std::size_t{1} << 37;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice handle) {
    ++fake_cuda.retains;
    *context = context_of(handle - 1);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = contexts.empty() ? nullptr : context_of(contexts.back());
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    if (!contexts.empty()) contexts.pop_back();
    if (context != nullptr) contexts.push_back(ordinal_of(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
    contexts.push_back(ordinal_of(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
    if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = context_of(contexts.back());
    contexts.pop_back();
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* handle) {
    if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *handle = contexts.back() + 1;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
    if (context == nullptr && contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *id =
        static_cast<unsigned long long>(context == nullptr ? contexts.back() : ordinal_of(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
    ++fake_cuda.synchronizations;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) ++fake_cuda.relaxed_loads;
    ++fake_cuda.loads;
    meddle(true);
    const int refused = fake_cuda.refused_loads;
    if (refused != 0) {
        if (refused > 0) --fake_cuda.refused_loads;
        return result_of(fake_cuda.load_result);
    }
    // A cubin is an ELF file; PTX is text that begins with comments or .version.
    const char* text = static_cast<const char*>(code);
    const bool is_elf = std::memcmp(text,
                                    "\x7f"
                                    "ELF",
                                    4) == 0;
    const bool is_ptx = std::strstr(text, ".version") != nullptr;
    if ((!is_elf && !is_ptx) || !fake::is_intact(text)) return CUDA_ERROR_INVALID_IMAGE;
    const std::lock_guard lock(mutex);
    libraries.push_back({text, {}});
    *library = reinterpret_cast<CUlibrary>(&libraries.back());
    return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary) {
    ++fake_cuda.unloads;
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    if (name == nullptr || *name == '\0') return CUDA_ERROR_NOT_FOUND;
    *kernel = reinterpret_cast<CUkernel>(library);
    return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return result_of(fake_cuda.function_result);
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel,
                              CUdevice device) {
    if (library_of(kernel) == nullptr || !is_device(device)) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = 40;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = fake_cuda.block_threads;
            break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = fake_cuda.static_shared;
            break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
            *value = fake_cuda.fixed_cluster[0];
            break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
            *value = fake_cuda.fixed_cluster[1];
            break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
            *value = fake_cuda.fixed_cluster[2];
            break;
        default:
            *value = 0;
    }
    return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                              std::size_t* bytes) {
    if (library_of(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (fake_cuda.parameter_count < 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (index >= static_cast<std::size_t>(fake_cuda.parameter_count)) {
        ++fake_cuda.failed_parameter_queries;
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = fake_cuda.parameters.at(index).offset;
    *bytes = fake_cuda.parameters.at(index).bytes;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel,
                              CUdevice device) {
    Library* const library = library_of(kernel);
    if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED && library != nullptr &&
        is_device(device) && value == 1) {
        ++fake_cuda.large_clusters;
        return CUDA_SUCCESS;
    }
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || library == nullptr ||
        !is_device(device) || value < 0 || value > kMostSharedBytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    library->granted[static_cast<std::size_t>(device - 1)] = value;
    ++fake_cuda.shared_grants;
    fake_cuda.shared_granted = value;
    return CUDA_SUCCESS;
}
// Stricter than the real one, which gives 48 KiB ungranted.
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
    const Library* const library = library_of(function);
    if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const int granted = library->granted[static_cast<std::size_t>(contexts.back())];
    if (config->sharedMemBytes > static_cast<unsigned>(granted)) return CUDA_ERROR_INVALID_VALUE;
    ++fake_cuda.launches;
    errno = EAGAIN;  // as system calls leave it
    fake::Cuda::Launch& launch = fake_cuda.launch;
    launch = {};
    launch.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    launch.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    launch.shared_bytes = config->sharedMemBytes;
    launch.attributes = config->numAttrs;
    launch.stream = config->hStream;
    launch.function = function;
    if (extra != nullptr) {
        if (parameters != nullptr || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
            extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != CU_LAUNCH_PARAM_END) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        launch.packed_bytes = *static_cast<const std::size_t*>(extra[3]);
        std::memcpy(launch.packed.data(), extra[1],
                    std::min(launch.packed.size(), launch.packed_bytes));
    }
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config->attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            const auto& cluster = attribute.value.clusterDim;
            launch.cluster = {cluster.x, cluster.y, cluster.z};
        }
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            launch.programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        }
    }
    if (const fake::Cuda::Kernel kernel = fake_cuda.kernel) {
        kernel(library->image.c_str(), parameters);
    }
    return result_of(fake_cuda.launch_result);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(next_address.fetch_add(16));
    return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream) {
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) {
    ++fake_cuda.synchronizations;
    return CUDA_SUCCESS;
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
    *id = reinterpret_cast<std::uintptr_t>(stream);
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
    *status = static_cast<CUstreamCaptureStatus>(fake_cuda.capture_status.load());
    return result_of(fake_cuda.capture_result);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
    ++fake_cuda.plain_allocations;
    return allocate(address, bytes);
}
CUresult cuMemFree(CUdeviceptr address) {
    ++fake_cuda.synchronizations;  // as the real one may
    release(address);
    return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream) {
    ++fake_cuda.allocations;
    return allocate(address, bytes);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
    ++fake_cuda.frees;
    release(address);
    return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
    *free = *total = std::size_t{1} << 30;
    return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    copy(pointer(to), from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    copy(to, pointer(from), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    copy(pointer(to), pointer(from), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream) {
    ++fake_cuda.clears;
    fake_cuda.cleared_bytes = bytes;
    if (has_memory()) std::memset(pointer(to), value, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream) {
    if (has_memory()) std::fill_n(static_cast<unsigned*>(pointer(to)), count, value);
    return CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(unsigned, CUpointer_attribute*, void**, CUdeviceptr) {
    return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* size, const cuuint64_t* stride,
                                const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
    std::memset(map, 0x5a, sizeof *map);
    std::memcpy(reinterpret_cast<char*>(map) + fake_cuda.address_in_maps, &address, sizeof address);
    ++fake_cuda.maps;
    fake_cuda.map = {};
    fake_cuda.map.type = type;
    fake_cuda.map.rank = rank;
    fake_cuda.map.swizzle = swizzle;
    for (std::size_t i = 0; i < rank; ++i) {
        fake_cuda.map.size[i] = size[i];
        fake_cuda.map.box[i] = box[i];
        if (i + 1 < rank) fake_cuda.map.stride[i] = stride[i];
    }
    return CUDA_SUCCESS;
}

}  // extern "C"

namespace {

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
    if (fake_cuda.allocation_result != 0) return result_of(fake_cuda.allocation_result);
    const std::size_t rounded = (bytes + 511) / 512 * 512;
    *address = has_memory() ? reinterpret_cast<CUdeviceptr>(std::aligned_alloc(512, rounded))
                            : next_address.fetch_add(rounded);
    return CUDA_SUCCESS;
}

}  // namespace
