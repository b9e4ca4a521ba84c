#include "tests/kernels/measure.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "api/kernel_launch.hpp"
#include "jitney/error.hpp"

namespace jitney::tests {
namespace {

Measurement measure_one(const policy::Spec& spec) {
    const runtime::KernelSource source = source_of(spec);
    Measurement result;
    result.spec = spec;
    result.shared_bytes = source.shared_bytes;
    try {
        const runtime::CompiledKernel kernel = runtime::compile(source, &result.report);
        result.cubin_bytes = kernel.entry.payload.size();
        result.milliseconds = kernel.milliseconds;
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
