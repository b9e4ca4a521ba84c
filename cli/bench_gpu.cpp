#include "cli/bench_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "cli/bench_data.hpp"
#include "jitney/error.hpp"

namespace jitney::cli {

namespace {

using Clock = std::chrono::steady_clock;

// Overwriting it takes the GPU longer than the host takes to queue the calls of a sample, so that
// the events around them see the GPU's time and not the host's; it leaves nothing of theirs in L2.
std::size_t flush_bytes(const GpuInfo& gpu) {
    return std::max<std::size_t>(4 * gpu.l2_bytes, std::size_t{256} << 20);
}

// Writes the values over and over.
void fill(const GpuMemory& memory, const std::vector<std::byte>& values) {
    for (std::size_t at = 0; at < memory.bytes(); at += values.size()) {
        copy_to_gpu(static_cast<std::byte*>(memory.data()) + at, values.data(),
                    std::min(values.size(), memory.bytes() - at));
    }
}

void require_room(const BenchCall& call, const GpuInfo& gpu, std::size_t free) {
    const double bytes = bytes_of(call.tensors);
    if (bytes <= static_cast<double>(free)) return;
    throw Error(ErrorCode::out_of_memory,
                fmt::format("this problem takes {}, and {} of the memory of GPU {} ({}) are free: "
                            "make it smaller",
                            text_of_bytes(bytes), text_of_bytes(static_cast<double>(free)),
                            gpu.index, gpu.name));
}

}  // namespace

GpuBench::GpuBench(int index) : gpu_(gpu_info(index)), scope_(index), flush_(flush_bytes(gpu_)) {}

std::vector<BenchCall> GpuBench::calls(const std::function<BenchCall(Device)>& make) {
    constexpr std::size_t kMaxCalls = 64;
    constexpr std::size_t kBlock = std::size_t{8} << 20;
    std::map<DType, std::vector<std::byte>> values;
    std::vector<BenchCall> calls;
    const std::size_t wanted = 3 * gpu_.l2_bytes;
    const std::size_t affordable = free_gpu_bytes() / 2;
    std::size_t total = 0;
    std::size_t each = 0;
    do {
        BenchCall call = make({DeviceType::cuda, gpu_.index});
        if (calls.empty()) require_room(call, gpu_, free_gpu_bytes());
        each = 0;
        for (Tensor* tensor : call.tensors) {
            GpuMemory& memory = memory_.emplace_back(bytes_of(*tensor));
            if (const auto content = call.contents.find(tensor); content != call.contents.end()) {
                copy_to_gpu(memory.data(), content->second.data(), content->second.size());
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
    clear_on_gpu(flush_.data(), flush_.bytes());  // the L2
    timer_.start();
    work();
    return timer_.stop();
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
        std::min<std::size_t>(std::size_t{1} << 30, free_gpu_bytes() / 4) & ~std::size_t{255};
    const GpuMemory from(bytes);
    const GpuMemory to(bytes);
    Samples samples;
    for (int i = 0; i < 12; ++i) {
        samples.sorted.push_back(milliseconds([&] { copy_on_gpu(to.data(), from.data(), bytes); }));
    }
    std::sort(samples.sorted.begin(), samples.sorted.end());
    return 2.0 * static_cast<double>(bytes) / samples.at(0.5) / 1e6;
}

}  // namespace jitney::cli
