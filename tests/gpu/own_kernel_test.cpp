// Kernels of a caller's own on the GPU: parameters in every form, constants, clusters, shared
// memory, graphs; and what is refused before it is launched.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/kernel.hpp"
#include "runtime/device.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/graph.hpp"

namespace jitney::tests {
namespace {

template <class T>
class DeviceArray {
  public:
    explicit DeviceArray(const std::vector<T>& values)
        : buffer_(values.size() * sizeof(T)), count_(values.size()) {
        buffer_.upload(std::as_bytes(std::span(values)));
    }
    T* data() const { return static_cast<T*>(buffer_.data()); }
    std::vector<T> download() const {
        std::vector<T> values(count_);
        buffer_.download(std::as_writable_bytes(std::span(values)));
        return values;
    }

  private:
    DeviceBuffer buffer_;
    std::size_t count_;
};

bool is_hopper_or_newer() {
    if (runtime::current_device().major >= 9) return true;
    MESSAGE("skipped: clusters need sm_90");
    return false;
}

// The sentence of a launch that has to be refused.
template <class Body>
std::string refusal(ErrorCode code, const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        CHECK(error.code() == code);
        return error.what();
    }
    FAIL_CHECK("it was launched");
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

const Kernel& saxpy() {
    static const Kernel kernel({.source = R"(
__global__ void saxpy(int n, float a, const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
)",
                                .function = "saxpy",
                                .file = "saxpy.cu"});
    return kernel;
}

struct Vectors {
    static constexpr int n = 1000;
    DeviceArray<float> x{made(3)};
    DeviceArray<float> y{made(7)};
    KernelLaunch shape{.grid = {4}, .block = {256}};

    static std::vector<float> made(int step) {
        std::vector<float> values(n);
        for (int i = 0; i < n; ++i)
            values[static_cast<std::size_t>(i)] = static_cast<float>(i * step % 64);
        return values;
    }
    // After y has been added a * x so many times.
    void check(float a, int times) const {
        synchronize();
        const std::vector<float> old_x = made(3);
        std::vector<float> expected = made(7);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += a * old_x[i] * static_cast<float>(times);  // exact
        CHECK(y.download() == expected);
    }
};

}  // namespace

TEST_CASE("own kernels: parameters by value, by address and in one piece") {
    const Vectors v;
    saxpy().launch(v.shape, v.n, 0.5f, v.x.data(), v.y.data());
    v.check(0.5f, 1);

    const int n = v.n;
    const float a = 0.5f;
    float* const x = v.x.data();
    float* const y = v.y.data();
    const void* values[] = {&n, &a, &x, &y};
    const std::size_t sizes[] = {4, 4, 8, 8};
    saxpy().launch_values(v.shape, values, sizes);
    v.check(0.5f, 2);

    const struct {
        int n;
        float a;
        const float* x;
        float* y;
    } packed = {n, a, x, y};
    saxpy().launch_packed(v.shape, std::as_bytes(std::span(&packed, 1)));
    v.check(0.5f, 3);

    const TestStream stream;
    KernelLaunch shape = v.shape;
    shape.stream = stream;
    saxpy().launch(shape, v.n, 0.5f, v.x.data(), v.y.data());
    stream.synchronize();
    v.check(0.5f, 4);
}

TEST_CASE("own kernels: a template, constants, a header and a struct of parameters") {
    KernelCode code;
    code.source = R"(
#include "scale.cuh"
struct Params { double factor; TYPE* data; int n; };
namespace own {
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) scale(const Params p) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < p.n) p.data[i] = scaled(p.data[i], static_cast<T>(p.factor)) + OFFSET;
}
}
)";
    code.function = "own::scale<TYPE, THREADS>";
    code.file = "scale.cu";
    code.constants = {{"TYPE", "float"}, {"THREADS", 64}, {"OFFSET", -2}};
    code.headers = {{"scale.cuh", "template <class T> T scaled(T x, T by) { return x * by; }\n"}};
    const Kernel kernel(code);
    CHECK(kernel == Kernel(code));
    const DeviceArray<float> data({1, 2, 3, 4, 5});
    const struct {
        double factor;
        float* data;
        int n;
    } params = {3.0, data.data(), 4};
    kernel.launch({.block = {64}}, params);
    synchronize();
    CHECK(data.download() == std::vector<float>{1, 4, 7, 10, 5});
    CHECK(kernel.load().block_threads == 64);
    const std::string sentence =
        refusal(ErrorCode::invalid_argument, [&] { kernel.launch({.block = {65}}, params); });
    CHECK(contains(sentence, "a block of 65 threads is more than 64"));
}

TEST_CASE("own kernels: clusters") {
    if (!is_hopper_or_newer()) return;
    KernelCode code;
    code.source = R"(
__global__ void FIXED clusters(unsigned* ranks, unsigned* sizes) {
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    ranks[blockIdx.x] = rank;
    sizes[blockIdx.x] = size;
}
)";
    code.function = "clusters";
    code.file = "clusters.cu";
    code.constants = {{"FIXED", ""}};
    const Kernel open(code);
    code.large_clusters = true;
    const Kernel large(code);
    code.large_clusters = false;
    code.constants = {{"FIXED", "__cluster_dims__(2, 1, 1)"}};
    const Kernel fixed(code);
    const DeviceArray<unsigned> ranks(std::vector<unsigned>(16, 99));
    const DeviceArray<unsigned> sizes(std::vector<unsigned>(16, 99));
    const auto run = [&](const Kernel& kernel, std::uint32_t grid, std::uint32_t cluster) {
        kernel.launch({.grid = {grid}, .block = {32}, .cluster = {cluster}}, ranks.data(),
                      sizes.data());
        synchronize();
        return std::pair(sizes.download(), ranks.download());
    };
    CHECK(run(open, 16, 1).first == std::vector<unsigned>(16, 1));
    CHECK(run(open, 16, 4).first == std::vector<unsigned>(16, 4));
    CHECK(run(open, 16, 4).second ==
          std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
    CHECK(run(fixed, 16, 1).first == std::vector<unsigned>(16, 2));
    CHECK(run(fixed, 16, 2).first == std::vector<unsigned>(16, 2));
    CHECK(run(large, 16, 16).first == std::vector<unsigned>(16, 16));
    const auto refused = [&](const Kernel& kernel, std::uint32_t grid, std::uint32_t cluster) {
        return refusal(ErrorCode::invalid_argument, [&] { run(kernel, grid, cluster); });
    };
    CHECK(contains(refused(open, 16, 16), "clusters of 16 x 1 x 1 blocks are more than 8"));
    CHECK(contains(refused(open, 6, 4), "a grid of 6 x 1 x 1 blocks is not made of clusters"));
    CHECK(contains(refused(fixed, 15, 1), "a grid of 15 x 1 x 1 blocks is not made of clusters"));
    CHECK(contains(refused(fixed, 16, 4), "its text says 2 x 1 x 1"));
}

TEST_CASE("own kernels: dynamic shared memory beyond 48 KiB") {
    KernelCode code;
    code.source = R"(
__global__ void turn(int* data, int n) {
    extern __shared__ int kept[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = data[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = kept[n - 1 - i];
}
)";
    code.function = "turn";
    code.file = "turn.cu";
    code.shared_bytes = 60 << 10;
    const Kernel kernel(code);
    std::vector<int> values(15 << 10);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<int>(i);
    const DeviceArray<int> data(values);
    KernelLaunch shape{.block = {128}, .shared_bytes = code.shared_bytes};
    kernel.launch(shape, data.data(), static_cast<int>(values.size()));
    synchronize();
    std::reverse(values.begin(), values.end());
    CHECK(data.download() == values);
    shape.shared_bytes += 4;
    CHECK(contains(
        refusal(ErrorCode::invalid_argument, [&] { kernel.launch(shape, data.data(), 1); }),
        "the shared_bytes of its code are 61440"));
    code.shared_bytes = 1 << 20;
    CHECK(contains(refusal(ErrorCode::unsupported, [&] { Kernel(code).load(); }),
                   "1048576 bytes of shared memory"));
}

TEST_CASE("own kernels: wrong parameters are refused where the driver tells them") {
    if (cuda().cuKernelGetParamInfo == nullptr) {
        MESSAGE("skipped: the driver is older than CUDA 12.4");
        return;
    }
    const Vectors v;
    const auto refused = [](const auto& body) {
        return refusal(ErrorCode::invalid_argument, body);
    };
    CHECK(contains(refused([&] { saxpy().launch(v.shape, v.n, 0.5f, v.x.data()); }),
                   "it has 4 parameters, and 3 were given"));
    CHECK(contains(refused([&] { saxpy().launch(v.shape, v.n, 0.5, v.x.data(), v.y.data()); }),
                   "its parameter 2 of 4 has 4 bytes, and one of 8 was given"));
    const std::vector<std::byte> bytes(32);
    CHECK(contains(refused([&] { saxpy().launch_packed(v.shape, bytes); }), "end at byte 24"));
    saxpy().launch(v.shape, v.n, 1.0f, v.x.data(), v.y.data());
    v.check(1.0f, 1);  // nothing else was launched
}

TEST_CASE("own kernels: shapes that the GPU does not have") {
    const Vectors v;
    const auto refused = [&](const KernelLaunch& shape) {
        return refusal(ErrorCode::invalid_argument,
                       [&] { saxpy().launch(shape, v.n, 0.5f, v.x.data(), v.y.data()); });
    };
    CHECK(contains(refused({.grid = {0}, .block = {32}}), "a grid of 0 x 1 x 1 blocks"));
    CHECK(contains(refused({.grid = {1, 65536}, .block = {32}}), "a grid of 1 x 65536 x 1"));
    CHECK(contains(refused({.grid = {1}, .block = {1, 1, 65}}), "a block of 1 x 1 x 65 threads"));
    CHECK(contains(refused({.grid = {1}, .block = {32, 33}}), "a block of 1056 threads is more"));
}

TEST_CASE("own kernels: captured in a graph once they are loaded") {
    if (!has_graphs()) return;
    const Vectors v;
    const TestStream stream;
    KernelLaunch shape = v.shape;
    shape.stream = stream;
    const auto launch = [&](const Kernel& kernel) {
        kernel.launch(shape, v.n, 0.25f, v.x.data(), v.y.data());
    };
    saxpy().load();
    const Graph graph(stream, [&] { launch(saxpy()); });
    graph.replay(stream);
    graph.replay(stream);
    stream.synchronize();
    v.check(0.25f, 2);

    const Kernel unknown({.source = "__global__ void later(int, float, const float*, float*) {}",
                          .function = "later"});
    bool refused = false;
    const Graph with_both(stream, [&] {
        launch(saxpy());
        const std::string sentence = refusal(ErrorCode::capture, [&] { launch(unknown); });
        refused = contains(sentence, "own:kernel.cu:later:");
    });
    CHECK(refused);
    with_both.replay(stream);
    stream.synchronize();
    v.check(0.25f, 3);
}

}  // namespace jitney::tests
