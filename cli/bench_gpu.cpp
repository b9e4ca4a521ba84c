#include "cli/bench_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>

#include "cli/bench_data.hpp"
#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace jitney::cli {

namespace {

using Clock = std::chrono::steady_clock;

// Overwriting it takes the GPU longer than the host takes to queue the calls of a sample, so that
// the events around them see the GPU's time and not the host's; it leaves nothing of theirs in L2.
std::size_t flush_bytes(const runtime::DeviceInfo& device) {
    const auto l2 = static_cast<std::size_t>(device.l2_bytes);
    return std::max<std::size_t>(4 * l2, std::size_t{256} << 20);
}

CUdeviceptr address_of(const DeviceMemory& memory) {
    return std::bit_cast<CUdeviceptr>(memory.data());
}

std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    runtime::check(runtime::driver().cuMemGetInfo(&free, &total), "asking for free GPU memory");
    return free;
}

// Writes the values over and over.
void fill(const DeviceMemory& memory, const std::vector<std::byte>& values) {
    for (std::size_t at = 0; at < memory.bytes(); at += values.size()) {
        copy_to_device(static_cast<std::byte*>(memory.data()) + at, values.data(),
                       std::min(values.size(), memory.bytes() - at));
    }
}

void require_room(const BenchCall& call, const runtime::DeviceInfo& device, std::size_t free) {
    const double bytes = bytes_of(call.tensors);
    if (bytes <= static_cast<double>(free)) return;
    throw Error(ErrorCode::out_of_memory,
                fmt::format("this problem takes {}, and {} of the memory of GPU {} ({}) are free: "
                            "make it smaller",
                            text_of_bytes(bytes), text_of_bytes(static_cast<double>(free)),
                            device.ordinal, device.name));
}

}  // namespace

struct GpuBench::Events {
    CUevent start = nullptr;
    CUevent stop = nullptr;

    Events() {
        const runtime::Driver& cuda = runtime::driver();
        if (cuda.cuEventCreate == nullptr || cuda.cuEventRecord == nullptr ||
            cuda.cuEventSynchronize == nullptr || cuda.cuEventElapsedTime == nullptr ||
            cuda.cuEventDestroy == nullptr) {
            throw Error(ErrorCode::unsupported,
                        "this CUDA driver has no events to time with: update it");
        }
        runtime::check(cuda.cuEventCreate(&start, CU_EVENT_DEFAULT), "cuEventCreate");
        runtime::check(cuda.cuEventCreate(&stop, CU_EVENT_DEFAULT), "cuEventCreate");
    }
    ~Events() {
        if (start != nullptr) runtime::driver().cuEventDestroy(start);
        if (stop != nullptr) runtime::driver().cuEventDestroy(stop);
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
};

GpuBench::GpuBench(int ordinal)
    : device_(runtime::device(ordinal)),
      scope_(std::make_unique<runtime::DeviceScope>(ordinal)),
      events_(std::make_unique<Events>()),
      flush_(flush_bytes(device_)) {}

GpuBench::~GpuBench() = default;

std::vector<BenchCall> GpuBench::calls(const std::function<BenchCall(Device)>& make) {
    constexpr std::size_t kMaxCalls = 64;
    constexpr std::size_t kBlock = std::size_t{8} << 20;
    std::map<DType, std::vector<std::byte>> values;
    std::vector<BenchCall> calls;
    const std::size_t wanted = 3 * static_cast<std::size_t>(device_.l2_bytes);
    const std::size_t affordable = free_bytes() / 2;
    std::size_t total = 0;
    std::size_t each = 0;
    do {
        BenchCall call = make({DeviceType::cuda, device_.ordinal});
        if (calls.empty()) require_room(call, device_, free_bytes());
        each = 0;
        for (Tensor* tensor : call.tensors) {
            DeviceMemory& memory = memory_.emplace_back(bytes_of(*tensor));
            if (const auto content = call.contents.find(tensor); content != call.contents.end()) {
                copy_to_device(memory.data(), content->second.data(), content->second.size());
            } else {
                auto& block = values[tensor->dtype];
                if (block.empty()) block = bench_values(tensor->dtype, kBlock);
                fill(memory, block);
            }
            tensor->data = memory.data();
            each += memory.bytes();
        }
        total += each;
        calls.push_back(std::move(call));
    } while (calls.size() < kMaxCalls && total < wanted + each && total + each < affordable);
    return calls;
}

double GpuBench::milliseconds(const std::function<void()>& work) {
    const runtime::Driver& cuda = runtime::driver();
    runtime::check(cuda.cuMemsetD8Async(address_of(flush_), 0, flush_.bytes(), nullptr),
                   "overwriting the L2");
    runtime::check(cuda.cuEventRecord(events_->start, nullptr), "cuEventRecord");
    work();
    runtime::check(cuda.cuEventRecord(events_->stop, nullptr), "cuEventRecord");
    runtime::check(cuda.cuEventSynchronize(events_->stop), "cuEventSynchronize");
    float spent = 0;
    runtime::check(cuda.cuEventElapsedTime(&spent, events_->start, events_->stop),
                   "cuEventElapsedTime");
    return spent;
}

Samples GpuBench::measure(const std::vector<BenchCall>& calls, int samples) {
    constexpr std::chrono::milliseconds kWarmUp{200};
    constexpr std::chrono::seconds kBudget{3};
    constexpr double kSampleMs = 0.05;   // of small calls, so many that they take about this long
    for (const BenchCall& call : calls)  // compiles, loads, makes workspaces
        call.run();
    double once = 0;
    for (const auto start = Clock::now(); once == 0 || Clock::now() - start < kWarmUp;)
        once = milliseconds(calls.front().run);
    const auto repeats = static_cast<std::size_t>(
        std::clamp(std::floor(kSampleMs / std::max(once, 1e-6)), 1.0, 16.0));

    Samples result;
    std::size_t next = 0;
    const std::size_t limit = samples > 0 ? static_cast<std::size_t>(samples) : 1000;
    const auto start = Clock::now();
    while (result.sorted.size() < limit &&
           (samples > 0 || result.sorted.size() < 5 || Clock::now() - start < kBudget)) {
        const double spent = milliseconds([&] {
            for (std::size_t i = 0; i < repeats; ++i)
                calls[next++ % calls.size()].run();
        });
        result.sorted.push_back(spent / static_cast<double>(repeats));
    }
    std::sort(result.sorted.begin(), result.sorted.end());
    return result;
}

double GpuBench::copy_bandwidth() {
    const std::size_t bytes =
        std::min<std::size_t>(std::size_t{1} << 30, free_bytes() / 4) & ~std::size_t{255};
    const DeviceMemory from(bytes);
    const DeviceMemory to(bytes);
    Samples samples;
    for (int i = 0; i < 12; ++i) {
        samples.sorted.push_back(milliseconds([&] {
            runtime::check(runtime::driver().cuMemcpyDtoDAsync(address_of(to), address_of(from),
                                                               bytes, nullptr),
                           "copying on the GPU");
        }));
    }
    std::sort(samples.sorted.begin(), samples.sorted.end());
    return 2.0 * static_cast<double>(bytes) / samples.at(0.5) / 1e6;
}

}  // namespace jitney::cli
