#include "jitney/gpu.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/environment.hpp"

namespace jitney {
namespace {

const runtime::Driver& driver() {
    return runtime::driver();
}

CUdeviceptr address_of(const void* gpu) {
    return std::bit_cast<CUdeviceptr>(gpu);
}

}  // namespace

int gpu_count() {
    return runtime::driver_available() ? runtime::device_count() : 0;
}

GpuInfo gpu_info(int index) {
    const runtime::DeviceInfo& device = runtime::device(index);
    return {index,
            device.name,
            device.arch,
            device.multiprocessors,
            device.memory_bytes,
            static_cast<std::size_t>(device.l2_bytes),
            10 * device.major + device.minor,
            device.shared_bytes_per_block};
}

Backend default_backend() {
    const bool jit =
        runtime::driver_available() && runtime::environment("JITNEY_BACKEND") != "reference";
    return jit ? Backend::jit : Backend::reference;
}

std::size_t free_gpu_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    runtime::check(driver().cuMemGetInfo(&free, &total), "asking for free GPU memory");
    return free;
}

GpuScope::GpuScope(int index) : scope_(new runtime::DeviceScope(index)) {}

GpuScope::~GpuScope() {
    delete static_cast<runtime::DeviceScope*>(scope_);
}

GpuMemory::GpuMemory(std::size_t bytes) : bytes_(bytes) {
    CUdeviceptr address = 0;
    runtime::check(driver().cuMemAlloc(&address, std::max<std::size_t>(bytes, 16)),
                   "allocating GPU memory for a tensor");
    data_ = std::bit_cast<void*>(address);
}

GpuMemory::GpuMemory(GpuMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

GpuMemory::~GpuMemory() {
    if (data_ != nullptr) driver().cuMemFree(address_of(data_));
}

void wait_for_gpu() {
    runtime::check(driver().cuStreamSynchronize(nullptr), "waiting for the GPU");
}

void copy_to_gpu(void* gpu, const void* host, std::size_t bytes) {
    if (bytes == 0) return;
    runtime::check(driver().cuMemcpyHtoDAsync(address_of(gpu), host, bytes, nullptr),
                   "copying a tensor to the GPU");
    wait_for_gpu();
}

void copy_from_gpu(void* host, const void* gpu, std::size_t bytes) {
    if (bytes == 0) return;
    runtime::check(driver().cuMemcpyDtoHAsync(host, address_of(gpu), bytes, nullptr),
                   "copying a tensor from the GPU");
    wait_for_gpu();
}

void copy_on_gpu(void* to, const void* from, std::size_t bytes) {
    runtime::check(driver().cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, nullptr),
                   "copying on the GPU");
}

void clear_on_gpu(void* gpu, std::size_t bytes) {
    runtime::check(driver().cuMemsetD8Async(address_of(gpu), 0, bytes, nullptr),
                   "clearing GPU memory");
}

GpuTimer::GpuTimer() {
    const runtime::Driver& cuda = driver();
    if (cuda.cuEventCreate == nullptr || cuda.cuEventRecord == nullptr ||
        cuda.cuEventSynchronize == nullptr || cuda.cuEventElapsedTime == nullptr ||
        cuda.cuEventDestroy == nullptr) {
        throw Error(ErrorCode::unsupported,
                    "this CUDA driver has no events to time with: update it");
    }
    for (void** event : {&start_, &stop_}) {
        CUevent made = nullptr;
        runtime::check(cuda.cuEventCreate(&made, CU_EVENT_DEFAULT), "cuEventCreate");
        *event = made;
    }
}

GpuTimer::~GpuTimer() {
    for (void* event : {start_, stop_}) {
        if (event != nullptr) driver().cuEventDestroy(static_cast<CUevent>(event));
    }
}

void GpuTimer::start() {
    runtime::check(driver().cuEventRecord(static_cast<CUevent>(start_), nullptr), "cuEventRecord");
}

double GpuTimer::stop() {
    const auto end = static_cast<CUevent>(stop_);
    runtime::check(driver().cuEventRecord(end, nullptr), "cuEventRecord");
    runtime::check(driver().cuEventSynchronize(end), "cuEventSynchronize");
    float spent = 0;
    runtime::check(driver().cuEventElapsedTime(&spent, static_cast<CUevent>(start_), end),
                   "cuEventElapsedTime");
    return spent;
}

}  // namespace jitney
