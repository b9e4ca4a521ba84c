#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <chrono>

#include "jitney/error.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/capture.hpp"
#include "runtime/cold_load.hpp"
#include "runtime/device.hpp"
#include "runtime/forks.hpp"
#include "runtime/image.hpp"

namespace jitney::runtime {

Runtime& runtime() {
    static Runtime* const instance = new Runtime;  // its kernels live as long as the process
    return *instance;
}

RuntimeCounts Runtime::counts() const noexcept {
    RuntimeCounts counts;
    counts.loaded = loaded_.load(std::memory_order_relaxed);
    counts.compiled = compiled_.load(std::memory_order_relaxed);
    counts.rejected = rejected_.load(std::memory_order_relaxed);
    return counts;
}

const Kernel& Runtime::load(const KernelKey& key, int ordinal, const Describe& describe,
                            CUstream_st* stream) {
    const KeptThread kept;
    const DeviceInfo& info = device(ordinal);
    if (is_capturing(stream)) {
        throw Error(ErrorCode::capture,
                    fmt::format("{} is not loaded yet, and the stream is being captured, when "
                                "nothing may be loaded or compiled: run the call, or make its "
                                "plan, once before the capture",
                                describe(key).specialization));
    }
    const DeviceScope scope(ordinal);
    const RelaxedCapture relaxed;
    const Library library = library_of(key, describe);
    Kernel kernel =
        prepare_kernel(library.handle, library.shared_bytes, info, library.specialization);
    kernel.parameter_bytes = library.parameter_bytes;
    return table_.insert(key, ordinal, kernel);
}

// One thread loads the library of a key; those that ask meanwhile wait, and share its failure. A
// failure is not kept: whoever asks later tries anew.
Runtime::Library Runtime::library_of(const KernelKey& key, const Describe& describe) {
    std::promise<Library> promise;
    std::shared_future<Library> future;
    bool is_loader = false;
    {
        const std::lock_guard lock(mutex_);
        const auto [at, inserted] = libraries_.try_emplace(key);
        is_loader = inserted;
        if (inserted) at->second = promise.get_future().share();
        future = at->second;
    }
    if (!is_loader) {
        // A thread that loaded it when the process was forked is not here.
        const bool ready = future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        if (!ready && forked_amid_compile()) refuse_after_fork(describe(key).specialization);
        return future.get();
    }
    try {
        const KernelSource source = describe(key);
        const ColdLoad loaded = cold_load(source);
        loaded_.fetch_add(1, std::memory_order_relaxed);
        if (loaded.compiled) compiled_.fetch_add(1, std::memory_order_relaxed);
        rejected_.fetch_add(loaded.rejected, std::memory_order_relaxed);
        promise.set_value(
            {loaded.handle, source.shared_bytes, loaded.parameter_bytes, source.specialization});
    } catch (...) {
        {
            const std::lock_guard lock(mutex_);
            libraries_.erase(key);
        }
        promise.set_exception(std::current_exception());
    }
    return future.get();
}

}  // namespace jitney::runtime
