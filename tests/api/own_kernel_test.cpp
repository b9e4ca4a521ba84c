// Launches of a caller's own kernels, with a driver that does as it is told: what reaches it, on
// which GPU, and what a launch costs.
#include "jitney/kernel.hpp"

#include <cuda.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/runtime.hpp"
#include "tests/api/own_kernel_calls.hpp"
#include "tests/runtime/allocation_count.hpp"

namespace jitney::tests {
namespace {

// The last launch, as the kernel saw it.
struct Launched {
    std::string image;
    ScaleValues values;
};
Launched launched;

void record(const char* image, void** parameters) {
    launched = {image, {}};
    if (parameters == nullptr) return;
    std::memcpy(&launched.values.x, parameters[0], sizeof launched.values.x);
    std::memcpy(&launched.values.n, parameters[1], sizeof launched.values.n);
    std::memcpy(&launched.values.by, parameters[2], sizeof launched.values.by);
}

void check_launched(const ScaleValues& values) {
    CHECK(launched.values.x == values.x);
    CHECK(launched.values.n == values.n);
    CHECK(launched.values.by == values.by);
}

using Triple = std::array<unsigned, 3>;

}  // namespace

TEST_CASE("scenario: own launch" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.kernel = &record;
    declare_parameters();
    const Kernel kernel(scale_code());
    CHECK(fake.inits == 0);  // making one needs no GPU
    const ScaleValues values;
    KernelLaunch shape{.grid = {8, 2, 3}, .block = {64, 2}, .cluster = {2, 1, 3}};
    shape.shared_bytes = 4096;
    shape.programmatic_dependent = true;
    shape.stream = reinterpret_cast<Stream>(std::uintptr_t{0x70});
    kernel.launch(shape, values.x, values.n, values.by);
    check_launched(values);
    for (const char* text :
         {"#define FACTOR 2\n", "#line 1 \"scale.cu\"\n", "// the text of scale\n", "--fmad=false",
          "--gpu-architecture=sm_90a", "--std=c++20", "--frandom-seed="}) {
        CHECK_MESSAGE(contains(launched.image, text), text);
    }
    CHECK(fake.launch.grid == Triple{8, 2, 3});
    CHECK(fake.launch.block == Triple{64, 2, 1});
    CHECK(fake.launch.cluster == Triple{2, 1, 3});
    CHECK(fake.launch.shared_bytes == 4096);
    CHECK(fake.launch.programmatic);
    CHECK(fake.launch.stream == shape.stream);
    CHECK(fake.shared_granted == 4096);

    kernel.launch({.grid = {5}}, ScaleValues{.n = 3}.x, 3, 0.5);
    CHECK(launched.values.n == 3);
    CHECK(fake.launch.grid == Triple{5, 1, 1});
    CHECK(fake.launch.attributes == 0);
    CHECK(fake.launch.stream == nullptr);

    // By address; and in one piece, filled up as a struct is.
    const void* addresses[] = {&values.x, &values.n, &values.by};
    const std::size_t sizes[] = {8, 4, 8};
    kernel.launch_values(shape, addresses, sizes);
    check_launched(values);
    kernel.launch_packed(shape, std::as_bytes(std::span(&values, 1)));
    CHECK(fake.launch.packed_bytes == sizeof values);
    CHECK(std::memcmp(fake.launch.packed.data(), &values, sizeof values) == 0);
    CHECK(fake.launches == 4);
    CHECK(fake.loads == 1);
    CHECK(fake.shared_grants == 1);
    CHECK(fake.large_clusters == 0);
    CHECK(fake.synchronizations == 0);

    const KernelResources resources = kernel.load();
    CHECK(resources.registers == 40);
    CHECK(resources.block_threads == 1024);
    CHECK(fake.loads == 1);
}

TEST_CASE("own kernels: a launch passes its shape, and its parameters in each form") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own launch", fake_gpu(cache)));
}

TEST_CASE("scenario: own hot" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    declare_parameters();
    const Kernel kernel(scale_code());
    const ScaleValues values;
    const KernelLaunch shape{.grid = {4}, .block = {64}, .cluster = {2}, .shared_bytes = 64};
    const void* addresses[] = {&values.x, &values.n, &values.by};
    const std::size_t sizes[] = {8, 4, 8};
    const auto call_all = [&] {
        kernel.launch(shape, values.x, values.n, values.by);
        kernel.launch_values(shape, addresses, sizes);
        kernel.launch_packed(shape, std::as_bytes(std::span(&values, 1)));
        const Kernel copy = kernel;
        copy.launch(shape, values.x, values.n, values.by);
    };
    call_all();
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 1000; ++i)
        call_all();
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == 4004);
    CHECK(fake.loads == 1);
    CHECK(fake.shared_grants == 1);
}

TEST_CASE("own kernels: a launch after the first allocates nothing and loads nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own hot", fake_gpu(cache)));
}

TEST_CASE("scenario: own capture" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    const Kernel kernel(scale_code());
    fake.capture_status = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
    CHECK(contains(refusal(ErrorCode::capture, [&] { kernel.launch({}); }), kScaleName));
    CHECK(fake.loads == 0);
    CHECK(fake.launches == 0);
    fake.capture_status = 0;
    kernel.load();
    fake.capture_status = 1;
    kernel.launch({});
    CHECK(fake.launches == 1);
}

TEST_CASE("own kernels: nothing is compiled or loaded while the stream is captured") {
    const TemporaryDirectory directory;
    const std::string compiles = directory / "compiles";
    const Ended ended = run("scenario: own capture",
                            fakes(directory / "cache", {{"FAKE_CUDA_MEMORY", "host"},
                                                        {"FAKE_NVRTC_COMPILES", compiles}}));
    REQUIRE_PASSED(ended);
    const std::string lines = read_file(compiles);
    CHECK(std::ranges::count(lines, '\n') == 1);
}

TEST_CASE("scenario: own kernels of two GPUs" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.kernel = &record;
    const Kernel kernel(scale_code());
    // The GPU that is named is lent to a thread that has none.
    std::jthread([&] {
        const ScaleValues values;
        kernel.launch({.device = 1}, values.x, values.n, values.by);
        CUcontext context = nullptr;
        CHECK(runtime::driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        CHECK(context == nullptr);
    }).join();
    CHECK(contains(launched.image, "--gpu-architecture=sm_80 "));
    CHECK(fake.loads == 1);
    const ScaleValues values;
    kernel.launch({}, values.x, values.n, values.by);
    CHECK(contains(launched.image, "--gpu-architecture=sm_90a "));
    kernel.launch({.device = 0}, values.x, values.n, values.by);
    {
        const runtime::DeviceScope scope(2);
        kernel.launch({}, values.x, values.n, values.by);
        CHECK(contains(launched.image, "--gpu-architecture=sm_90a "));
        CHECK(fake.loads == 2);          // once an arch
        CHECK(fake.shared_grants == 3);  // once a GPU
        CHECK(contains(refusal(ErrorCode::no_device, [&] { kernel.launch({.device = 0}); }),
                       "GPU 0, and the current context is of GPU 2"));
    }
    // sm_80 has no clusters, and no launch that begins early.
    const runtime::DeviceScope scope(1);
    kernel.launch({.programmatic_dependent = true}, values.x, values.n, values.by);
    CHECK(fake.launch.attributes == 0);
    CHECK(contains(refusal(ErrorCode::invalid_argument,
                           [&] {
                               kernel.launch({.grid = {2}, .cluster = {2}}, values.x, values.n,
                                             values.by);
                           }),
                   "need a GPU of sm_90 or newer, and Fake GPU is none"));
    for (const int none : {-2, 3, 64}) {
        std::jthread([&] { CHECK_THROWS_AS(kernel.launch({.device = none}), Error); }).join();
    }
}

TEST_CASE("own kernels: several GPUs, each with the code of its arch") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own kernels of two GPUs",
                       fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "90,80,90"}})));
}

TEST_CASE("scenario: own kernels of an arch alone" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.kernel = &record;
    KernelCode code = scale_code();
    const Kernel plain(code);
    code.arch_specific = true;
    const Kernel specific(code);
    const ScaleValues values;
    const auto image_on = [&](const Kernel& kernel, int device) {
        const runtime::DeviceScope scope(device);
        kernel.launch({}, values.x, values.n, values.by);
        return launched.image;
    };
    CHECK(contains(image_on(plain, 0), "--gpu-architecture=sm_100 "));
    CHECK(contains(image_on(specific, 0), "--gpu-architecture=sm_100a "));
    CHECK(contains(image_on(plain, 1), "--gpu-architecture=sm_90a "));
    CHECK(contains(image_on(specific, 1), "--gpu-architecture=sm_90a "));
    CHECK(contains(image_on(specific, 2), "--gpu-architecture=sm_80 "));
    CHECK(specific.spec("sm_100a").ends_with("@sm_100a"));
    CHECK(specific.spec("sm_90a") == plain.spec("sm_90a"));
    CHECK(specific.spec("sm_80") == plain.spec("sm_80"));
    CHECK(specific.prewarm("sm_120a").status == PrewarmStatus::compiled);
    for (const char* arch : {"sm_100", "sm_100f", "sm_90", "sm_77", "sm_95a"}) {
        CAPTURE(arch);
        CHECK_THROWS_AS(specific.spec(arch), Error);
    }
    CHECK(contains(refusal(ErrorCode::invalid_argument, [&] { specific.prewarm("sm_100"); }),
                   "give sm_100a"));
    CHECK_THROWS_AS(plain.spec("sm_100a"), Error);
    const runtime::DeviceScope scope(0);
    CHECK(contains(refusal(ErrorCode::invalid_argument, [&] { specific.launch({.grid = {0}}); }),
                   "@sm_100a: a grid of"));
}

TEST_CASE("own kernels: those of an arch alone are compiled under its suffix") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own kernels of an arch alone",
                       fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "100,90,80"}})));
}

TEST_CASE("scenario: own kernel's thread" * doctest::skip()) {
    std::jthread([] {
        const Kernel kernel(scale_code());
        const auto check = [&](bool fails, const auto& call) {
            for (int i = 0; i < 3; ++i) {
                fake_cuda().launch_result = i == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
                bool failed = false;
                errno = 77;
                try {
                    call(kernel);
                } catch (const Error&) {
                    failed = true;
                }
                CHECK(errno == 77);
                CHECK(failed == (fails || (i == 2 && fake_cuda().launches == 3)));
                CUcontext context = nullptr;
                CHECK(runtime::driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
                CHECK(context == nullptr);
            }
        };
        CHECK(runtime::driver_available());
        check(false, [](const Kernel& own) { own.launch({}); });
        fake_cuda().launches = 0;
        check(false, [](const Kernel& own) { own.load(); });
        check(false, [](const Kernel& own) { own.prewarm("sm_80"); });
        check(true, [](const Kernel& own) { own.launch({.grid = {0}}); });
    }).join();
}

TEST_CASE("own kernels: calls leave their thread as it was") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(
        run("scenario: own kernel's thread", fake_gpu(cache, {{"FAKE_NVRTC_MEDDLES", "1"},
                                                              {"FAKE_CUDA_MEDDLES", "1"},
                                                              {"FAKE_CUDA_DEVICES", "90,80,90"}})));
}

}  // namespace jitney::tests
