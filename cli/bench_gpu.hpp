// Times calls on a GPU.
#pragma once

#include <vector>

#include "cli/bench.hpp"
#include "cli/memory.hpp"

namespace jitney::cli {

class GpuBench {
  public:
    explicit GpuBench(int index);
    GpuBench(const GpuBench&) = delete;
    GpuBench& operator=(const GpuBench&) = delete;

    const GpuInfo& gpu() const { return gpu_; }

    // Independent calls, with memory of their own, which together are several times the L2.
    std::vector<BenchCall> calls(const std::function<BenchCall(Device)>& make);
    // Of the calls in turn, each past what the L2 still holds of it.
    Samples measure(const std::vector<BenchCall>& calls, int samples);
    // Of a large copy on the device, read and written bytes together, in GB/s.
    double copy_bandwidth();

  private:
    double milliseconds(const std::function<void()>& work);

    GpuInfo gpu_;
    GpuScope scope_;
    GpuTimer timer_;
    std::vector<GpuMemory> memory_;
    GpuMemory flush_;
};

}  // namespace jitney::cli
