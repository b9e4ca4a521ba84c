// The GPUs that are here, their memory, and their clock: for programs that use Jitney alone,
// without the CUDA runtime. What else a program has of either works beside it.
#pragma once

#include <cstddef>
#include <string>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

struct GpuInfo {
    int index = 0;
    std::string name;
    std::string arch;  // "sm_90a"
    int multiprocessors = 0;
    std::size_t memory_bytes = 0;
    std::size_t l2_bytes = 0;
    int capability = 0;              // 10 * major + minor
    int shared_bytes_per_block = 0;  // the most that a block may ask for
};

// 0 where there is no driver, or no GPU that it can use.
JITNEY_API int gpu_count();
// Throws Error (no_device), which says what there is, where it is not there.
JITNEY_API GpuInfo gpu_info(int index);
// The backend for which a program best places tensors of its own: that of kernels where a GPU is
// here and JITNEY_BACKEND does not ask for the reference.
JITNEY_API Backend default_backend();
// The bytes that are free on the current GPU. Throws Error.
JITNEY_API std::size_t free_gpu_bytes();

// Makes a GPU the thread's current one, in its primary context, while it lives.
class JITNEY_API GpuScope {
  public:
    explicit GpuScope(int index);
    ~GpuScope();
    GpuScope(const GpuScope&) = delete;
    GpuScope& operator=(const GpuScope&) = delete;

  private:
    void* scope_;
};

// Memory of the current GPU.
class JITNEY_API GpuMemory {
  public:
    explicit GpuMemory(std::size_t bytes);
    GpuMemory(GpuMemory&& other) noexcept;
    GpuMemory& operator=(GpuMemory&& other) noexcept;
    ~GpuMemory();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

// On the default stream. They return when the copy is done, but that on the GPU, which is
// asynchronous, as clearing is.
JITNEY_API void copy_to_gpu(void* gpu, const void* host, std::size_t bytes);
JITNEY_API void copy_from_gpu(void* host, const void* gpu, std::size_t bytes);
JITNEY_API void copy_on_gpu(void* to, const void* from, std::size_t bytes);
JITNEY_API void clear_on_gpu(void* gpu, std::size_t bytes);
// Waits for the default stream.
JITNEY_API void wait_for_gpu();

// Times what the default stream does between two calls.
class JITNEY_API GpuTimer {
  public:
    GpuTimer();
    ~GpuTimer();
    GpuTimer(const GpuTimer&) = delete;
    GpuTimer& operator=(const GpuTimer&) = delete;

    void start();
    // Waits for the end, and gives the milliseconds since start().
    double stop();

  private:
    void* start_ = nullptr;
    void* stop_ = nullptr;
};

}  // namespace jitney
