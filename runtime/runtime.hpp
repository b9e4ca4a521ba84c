// From a key to a loaded kernel: memory, then the cache on disk, then NVRTC. One runtime a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/kernel.hpp"
#include "runtime/kernel_table.hpp"

struct CUstream_st;

namespace jitney::runtime {

// What the kernels of this process cost so far.
struct RuntimeCounts {
    std::uint64_t loaded = 0;    // kernels given to the driver
    std::uint64_t compiled = 0;  // of those, by this process
    std::uint64_t rejected = 0;  // cache entries that the driver would not load
};

class Runtime {
  public:
    // The kernel, loaded for the device. A kernel seen before is found without a lock, an
    // allocation or a call of the driver. Otherwise a context of the device must be current, and
    // while the stream is captured Error (capture) is thrown before anything is loaded. The key
    // includes the arch. The reference lives as long as the process.
    const Kernel& kernel(const KernelKey& key, int device, const Describe& describe,
                         CUstream_st* stream) {
        const Kernel* found = table_.find(key, device);
        return found != nullptr ? *found : load(key, device, describe, stream);
    }

    // Null where it is not loaded; never loads.
    const Kernel* find(const KernelKey& key, int device) const noexcept {
        return table_.find(key, device);
    }

    RuntimeCounts counts() const noexcept;

  private:
    // A kernel in the driver, good for every device of its arch.
    struct Library {
        CUkern_st* handle = nullptr;
        int shared_bytes = 0;
        int parameter_bytes = -1;  // as in Kernel
        std::string specialization;
    };

    friend Runtime& runtime();
    Runtime() = default;
    ~Runtime() = default;

    const Kernel& load(const KernelKey& key, int device, const Describe& describe,
                       CUstream_st* stream);
    Library library_of(const KernelKey& key, const Describe& describe);

    KernelTable table_;
    std::mutex mutex_;  // of the libraries
    std::unordered_map<KernelKey, std::shared_future<Library>, KernelKeyHash> libraries_;
    std::atomic<std::uint64_t> loaded_{0};
    std::atomic<std::uint64_t> compiled_{0};
    std::atomic<std::uint64_t> rejected_{0};
};

Runtime& runtime();

}  // namespace jitney::runtime
