// Times calls on a GPU with the driver's events.
#pragma once

#include <memory>
#include <vector>

#include "cli/bench.hpp"
#include "cli/memory.hpp"

namespace jitney::runtime {
class DeviceScope;
struct DeviceInfo;
}  // namespace jitney::runtime

namespace jitney::cli {

class GpuBench {
  public:
    explicit GpuBench(int ordinal);
    ~GpuBench();
    GpuBench(const GpuBench&) = delete;
    GpuBench& operator=(const GpuBench&) = delete;

    const runtime::DeviceInfo& device() const { return device_; }

    // Independent calls, with memory of their own, which together are several times the L2.
    std::vector<BenchCall> calls(const std::function<BenchCall(Device)>& make);
    // Of the calls in turn, each past what the L2 still holds of it.
    Samples measure(const std::vector<BenchCall>& calls, int samples);
    // Of a large copy on the device, read and written bytes together, in GB/s.
    double copy_bandwidth();

  private:
    struct Events;
    double milliseconds(const std::function<void()>& work);

    const runtime::DeviceInfo& device_;
    std::unique_ptr<runtime::DeviceScope> scope_;
    std::unique_ptr<Events> events_;
    std::vector<DeviceMemory> memory_;
    DeviceMemory flush_;
};

}  // namespace jitney::cli
