// Facts of the GPUs, and which one a call is meant for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct CUctx_st;

namespace jitney::runtime {

// No process sees more.
inline constexpr int kMaxDevices = 64;

struct DeviceInfo {
    int ordinal = 0;
    int handle = 0;  // the driver's CUdevice
    std::string name;
    int major = 0;  // compute capability
    int minor = 0;
    std::string arch;  // as specializations name it: "sm_90a", "sm_80"
    int multiprocessors = 0;
    int shared_bytes_per_block = 0;  // the most a block may opt in to
    int shared_bytes_per_multiprocessor = 0;
    int l2_bytes = 0;
    std::size_t memory_bytes = 0;
    int clock_khz = 0;
    bool memory_pools = false;  // cuMemAllocAsync works
    int driver_version = 0;     // the newest CUDA that the driver supports: 13000 is 13.0
};

// 0 where there is no driver.
int device_count();

// Throws Error (no_device) where there is no such device.
const DeviceInfo& device(int ordinal);

// The device of the calling thread's current context. Where the thread has none, the primary
// context of device `fallback` becomes current: until the call that asks ends, where a
// BorrowedThread (caller_thread.hpp) spans it, and else for good.
const DeviceInfo& current_device(int fallback = 0);

namespace detail {
// Whether current_device() has made a context current since the thread's innermost BorrowedThread
// began.
extern constinit thread_local bool lent;
}  // namespace detail

// The thread has no current context any more.
void leave_lent_context() noexcept;

// The driver's number of the context that this thread's last current_device() found; never used
// again in a process.
std::uint64_t last_context_id() noexcept;

// Makes a context of the device current for a scope: nothing where the current one is of that
// device, else its primary context, and the previous one comes back at the end.
class DeviceScope {
  public:
    explicit DeviceScope(int ordinal);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

  private:
    bool pushed_ = false;
};

}  // namespace jitney::runtime
