// own_kernel [ARCH]: a kernel of one's own, compiled, cached and launched as Jitney's kernels are.
// With a GPU it computes y += 2 a x there, and its status says whether the result is right; without
// one it compiles for ARCH (sm_90a unless it is named), and prints the line with which
// `jitney prewarm --manifest` would do the same.
#include <dlfcn.h>

#include <jitney/error.hpp>
#include <jitney/kernel.hpp>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

constexpr const char* kSource = R"(
#include "multiply.cuh"

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
saxpy(int n, float a, const float* x, float* y) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < n) y[i] += own::multiply(FACTOR * a, x[i]);
}
)";

constexpr const char* kHeader = R"(
#pragma once
namespace own {
__device__ float multiply(float a, float b) { return a * b; }
}
)";

constexpr std::uint32_t kThreads = 256;

jitney::Kernel saxpy() {
    jitney::KernelCode code;
    code.source = kSource;
    code.function = "saxpy<THREADS>";
    code.file = "saxpy.cu";  // its name in the compiler's log
    code.constants = {{"THREADS", kThreads}, {"FACTOR", 2.0f}};
    code.headers = {{"multiply.cuh", kHeader}};
    return jitney::Kernel(code);
}

// The driver, for memory that host and GPU share.
class Driver {
  public:
    Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
        int count = 0;
        usable_ = library_ != nullptr && function<int(unsigned)>("cuInit")(0) == 0 &&
                  function<int(int*)>("cuDeviceGetCount")(&count) == 0 && count > 0;
        if (!usable_) return;
        void* context = nullptr;
        call(function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0));
        call(function<int(void*)>("cuCtxSetCurrent")(context));
    }
    bool usable() const { return usable_; }

    float* floats(std::size_t count) const {
        constexpr unsigned everywhere = 1;
        void* memory = nullptr;
        call(function<int(void**, std::size_t, unsigned)>("cuMemAllocManaged")(
            &memory, count * sizeof(float), everywhere));
        return static_cast<float*>(memory);
    }
    void synchronize() const { call(function<int()>("cuCtxSynchronize")()); }

  private:
    static void call(int result) {
        if (result == 0) return;
        throw std::runtime_error("the driver returned " + std::to_string(result));
    }
    template <class Signature>
    Signature* function(const char* name) const {
        return reinterpret_cast<Signature*>(dlsym(library_, name));
    }

    void* library_;
    bool usable_ = false;
};

int launch(const Driver& driver) {
    constexpr int n = 1000;
    constexpr float a = 0.5f;
    float* x = driver.floats(n);
    float* y = driver.floats(n);
    for (int i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = 1.0f;
    }
    const jitney::KernelLaunch shape{.grid = {(n + kThreads - 1) / kThreads}, .block = {kThreads}};
    saxpy().launch(shape, n, a, x, y);
    driver.synchronize();
    for (int i = 0; i < n; ++i) {
        if (y[i] == 1.0f + static_cast<float>(i)) continue;
        std::fprintf(stderr, "error: y[%d] is %g\n", i, static_cast<double>(y[i]));
        return 1;
    }
    std::printf("launched %s\n", saxpy().spec("sm_90a").c_str());
    return 0;
}

int prewarm(const std::string& arch) {
    const jitney::PrewarmEntry entry = saxpy().prewarm(arch);
    if (entry.status == jitney::PrewarmStatus::failed) {
        std::fprintf(stderr, "error: %s\n", entry.error.c_str());
        return 1;
    }
    const bool compiled = entry.status == jitney::PrewarmStatus::compiled;
    std::printf("# %s %s\n%s\n", compiled ? "compiled" : "cached", entry.spec.c_str(),
                saxpy().manifest(arch).c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Driver driver;
        return driver.usable() ? launch(driver) : prewarm(argc > 1 ? argv[1] : "sm_90a");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
