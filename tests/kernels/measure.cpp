#include "tests/kernels/measure.hpp"

#include <time.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <thread>

#include "jitney/error.hpp"
#include "operations/kernel_launch.hpp"

namespace jitney::tests {
namespace {

// NVRTC compiles on the thread that calls it.
double thread_milliseconds() {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

Measurement measure_one(const policy::Spec& spec) {
    const runtime::KernelSource source = source_of(spec);
    Measurement result;
    result.spec = spec;
    result.shared_bytes = source.shared_bytes;
    try {
        const double start = thread_milliseconds();
        const runtime::CompiledKernel kernel = runtime::compile(source, &result.report);
        result.milliseconds = thread_milliseconds() - start;
        result.cubin_bytes = kernel.entry.payload.size();
    } catch (const Error& error) {
        result.error = error.what();
    }
    return result;
}

}  // namespace

std::vector<Measurement> measure(std::span<const policy::Spec> specs, unsigned jobs,
                                 const std::function<void(const Measurement&)>& done) {
    std::vector<Measurement> results(specs.size());
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    const auto work = [&] {
        for (std::size_t i = next++; i < specs.size(); i = next++) {
            results[i] = measure_one(specs[i]);
            if (!done) continue;
            const std::lock_guard lock(mutex);
            done(results[i]);
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < jobs; ++i)
        threads.emplace_back(work);
    work();
    threads.clear();
    return results;
}

}  // namespace jitney::tests
