// Machine code as large as it is in earnest: whole on its way from the compiler through the cache
// to the driver, and granted the shared memory that it asks for, on each GPU.
#include <cuda.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/launch.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/fake_cubin.hpp"
#include "tests/runtime/tiny.hpp"

namespace jitney::tests {
namespace {

using namespace jitney::runtime;

// The only entry below that directory.
std::string entry_in(const std::string& directory) {
    std::string found;
    for (const auto& each : std::filesystem::recursive_directory_iterator(directory)) {
        if (!each.is_regular_file() || each.file_size() < fake::kCubinBytes) continue;
        CHECK(found.empty());
        found = each.path().string();
    }
    REQUIRE_FALSE(found.empty());
    return found;
}

void flip(std::string& bytes, std::size_t place) {
    bytes[place] = static_cast<char>(bytes[place] ^ 1);
}

const Kernel& load(int arch, int factor, int device) {
    return runtime::runtime().kernel(tiny_key(arch, factor), device, tiny_describe(), nullptr);
}

}  // namespace

TEST_CASE("scenario: a load that is counted" * doctest::skip()) {
    current_device();
    load(90, 3, 0);
    const RuntimeCounts counts = runtime::runtime().counts();
    std::printf("compiled: %d\n", static_cast<int>(counts.compiled));
    std::printf("rejected: %d\n", static_cast<int>(counts.rejected));
}

TEST_CASE("an entry whose last byte has changed is compiled anew, and never reaches the driver") {
    const TemporaryDirectory root;
    const Variables variables = fakes(root / "cache");
    REQUIRE_PASSED(run("scenario: a load that is counted", variables));
    const std::string path = entry_in(root / "cache");
    const std::string good = read_file(path);
    std::string bad = good;
    flip(bad, bad.size() - 1);
    write_file(path, bad);
    const Ended again = run("scenario: a load that is counted", variables);
    REQUIRE_PASSED(again);
    CHECK(again.value("compiled") == "1");
    CHECK(again.value("rejected") == "0");
    CHECK(read_file(path) == good);
}

TEST_CASE("scenario: a damaged cubin" * doctest::skip()) {
    current_device();
    const auto result = [](const std::string& image) {
        CUlibrary library = nullptr;
        return driver().cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr,
                                          nullptr, 0);
    };
    const std::string good = fake::sealed_cubin("a kernel");
    CHECK(result(good) == CUDA_SUCCESS);
    for (const std::size_t place : {std::size_t{40}, good.size() / 2, good.size() - 1}) {
        std::string bad = good;
        flip(bad, place);
        CHECK(result(bad) == CUDA_ERROR_INVALID_IMAGE);
    }
}

TEST_CASE("the fake driver notices a byte of a cubin that has changed") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(run("scenario: a damaged cubin", fakes(root / "cache")));
}

// Whatever the runtime grants wrongly, the attribute, the amount, the kernel or the GPU, ends in a
// launch that the fake refuses.
TEST_CASE("scenario: shared memory that is granted" * doctest::skip()) {
    current_device();
    const fake::Cuda& fake = fake_cuda();
    const Kernel& small = load(90, 3, 0);
    const Kernel& large = load(90, 100, 0);
    const Kernel& elsewhere = load(90, 3, 1);
    CHECK(small.handle == elsewhere.handle);
    LaunchShape shape;
    for (const auto& [kernel, bytes] : {std::pair{&small, 3 << 10}, {&large, 100 << 10}}) {
        shape.shared_bytes = bytes;
        launch(*kernel, shape, nullptr, nullptr);
        CHECK(fake.launch.shared_bytes == static_cast<unsigned>(bytes));
        shape.shared_bytes = bytes + 1;
        CHECK_THROWS_AS(launch(*kernel, shape, nullptr, nullptr), Error);
    }
    CHECK(fake.launches == 2);
    std::jthread([&] {
        REQUIRE(current_device(1).ordinal == 1);
        shape.shared_bytes = 3u << 10;
        launch(elsewhere, shape, nullptr, nullptr);
        CHECK_THROWS_AS(launch(large, shape, nullptr, nullptr), Error);  // granted on GPU 0 alone
    }).join();
    CHECK(fake.launches == 3);

    // What the fake refuses of the attribute itself.
    const Driver& cuda = driver();
    CUdevice handle = 0;
    REQUIRE(cuda.cuDeviceGet(&handle, 0) == CUDA_SUCCESS);
    const CUkernel kernel = small.handle;
    constexpr auto shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CHECK(cuda.cuKernelSetAttribute(shared, 1024, kernel, handle) == CUDA_SUCCESS);
    CHECK(cuda.cuKernelSetAttribute(shared, 1 << 20, kernel, handle) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuda.cuKernelSetAttribute(shared, 1024, kernel, handle - 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuda.cuKernelSetAttribute(shared, 1024, nullptr, handle) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100, kernel,
                                    handle) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("each kernel is granted its own shared memory on each GPU") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(run("scenario: shared memory that is granted",
                       fakes(root / "cache", {{"FAKE_CUDA_DEVICES", "90,90"}})));
}

}  // namespace jitney::tests
