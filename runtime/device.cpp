#include "runtime/device.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "core/arch.hpp"
#include "jitney/error.hpp"
#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

// Filled one by one and never emptied. What is there is read without a lock.
template <class Value>
using PerDevice = std::array<std::atomic<Value>, static_cast<std::size_t>(kMaxDevices)>;

PerDevice<const DeviceInfo*> infos{};
PerDevice<CUcontext> primary_contexts{};
std::mutex mutex;

template <class Value>
std::atomic<Value>& of(PerDevice<Value>& values, int ordinal) {
    return values[static_cast<std::size_t>(ordinal)];
}

int attribute(CUdevice handle, CUdevice_attribute which) {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, handle), "reading a device attribute");
    return value;
}

DeviceInfo read_device(int ordinal) {
    const Driver& cuda = driver();
    CUdevice handle = 0;
    check(cuda.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
    DeviceInfo info;
    info.ordinal = ordinal;
    info.handle = handle;
    std::array<char, 256> name{};
    check(cuda.cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle),
          "cuDeviceGetName");
    info.name = name.data();
    info.major = attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.minor = attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.arch = arch_of_capability(info.major, info.minor).text();
    info.multiprocessors = attribute(handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.shared_bytes_per_block =
        attribute(handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info.shared_bytes_per_multiprocessor =
        attribute(handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    info.l2_bytes = attribute(handle, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    check(cuda.cuDeviceTotalMem(&info.memory_bytes, handle), "cuDeviceTotalMem");
    info.clock_khz = attribute(handle, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info.memory_pools = attribute(handle, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
    info.driver_version = driver_status().version;
    return info;
}

// Retained once a process, never released: whoever else holds the context is not disturbed.
CUcontext primary_context(int ordinal) {
    const DeviceInfo& info = device(ordinal);
    std::atomic<CUcontext>& cached = of(primary_contexts, ordinal);
    if (CUcontext context = cached.load(std::memory_order_acquire)) return context;
    const std::lock_guard lock(mutex);
    if (CUcontext context = cached.load(std::memory_order_acquire)) return context;
    CUcontext context = nullptr;
    check(driver().cuDevicePrimaryCtxRetain(&context, info.handle),
          "retaining the primary context of the device");
    cached.store(context, std::memory_order_release);
    return context;
}

// The ordinal of a driver's handle: equal, as far as drivers go, but not by their contract.
int ordinal_of(CUdevice handle) {
    const int count = device_count();
    if (handle >= 0 && handle < count && device(handle).handle == handle) return handle;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (device(ordinal).handle == handle) return ordinal;
    }
    throw Error(ErrorCode::no_device,
                fmt::format("the current context is of device handle {}, which is none of the {} "
                            "devices of this process",
                            handle, count));
}

// What this thread's last look at its context found. A context's number is never used again in a
// process, unlike its handle, so that one question tells whether it is still the same.
struct ContextMemo {
    unsigned long long context_id = 0;
    const DeviceInfo* device = nullptr;
};
constinit thread_local ContextMemo memo;

// The device of the current context; null where there is none.
const DeviceInfo* device_of_context() {
    const Driver& cuda = driver();
    unsigned long long id = 0;
    if (memo.device != nullptr && cuda.cuCtxGetId(nullptr, &id) == CUDA_SUCCESS &&
        id == memo.context_id) [[likely]] {
        return memo.device;
    }
    // Asked for first: a question for the device of no context would be an error of the driver,
    // which compute-sanitizer counts.
    CUcontext context = nullptr;
    check(cuda.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    if (context == nullptr) return nullptr;
    CUdevice handle = 0;
    check(cuda.cuCtxGetDevice(&handle), "cuCtxGetDevice");
    check(cuda.cuCtxGetId(nullptr, &id), "cuCtxGetId");
    memo = {id, &device(ordinal_of(handle))};
    return memo.device;
}

}  // namespace

int device_count() {
    return driver_status().device_count;
}

const DeviceInfo& device(int ordinal) {
    const Driver& cuda [[maybe_unused]] = driver();
    if (ordinal < 0 || ordinal >= device_count() || ordinal >= kMaxDevices) {
        throw Error(ErrorCode::no_device,
                    fmt::format("there is no GPU {}: this process sees {}, numbered from 0",
                                ordinal, device_count()));
    }
    std::atomic<const DeviceInfo*>& cached = of(infos, ordinal);
    if (const DeviceInfo* info = cached.load(std::memory_order_acquire)) return *info;
    const std::lock_guard lock(mutex);
    if (const DeviceInfo* info = cached.load(std::memory_order_acquire)) return *info;
    const auto* info = new DeviceInfo(read_device(ordinal));  // lives as long as the process
    cached.store(info, std::memory_order_release);
    return *info;
}

const DeviceInfo& current_device(int fallback) {
    if (const DeviceInfo* current = device_of_context()) return *current;
    const DeviceInfo& info = device(fallback);
    check(driver().cuCtxSetCurrent(primary_context(fallback)), "cuCtxSetCurrent");
    unsigned long long id = 0;
    check(driver().cuCtxGetId(nullptr, &id), "cuCtxGetId");
    memo = {id, &info};
    detail::lent = true;
    return info;
}

constinit thread_local bool detail::lent = false;

void leave_lent_context() noexcept {
    memo = {};
    driver().cuCtxSetCurrent(nullptr);
}

std::uint64_t last_context_id() noexcept {
    return memo.context_id;
}

DeviceScope::DeviceScope(int ordinal) {
    if (const DeviceInfo* current = device_of_context(); current && current->ordinal == ordinal) {
        return;
    }
    check(driver().cuCtxPushCurrent(primary_context(ordinal)), "cuCtxPushCurrent");
    pushed_ = true;
}

DeviceScope::~DeviceScope() {
    CUcontext previous = nullptr;
    if (pushed_) driver().cuCtxPopCurrent(&previous);
}

}  // namespace jitney::runtime
