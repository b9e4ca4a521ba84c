// The GPUs, their memory and their clock, and elements of host tensors, by the public headers.
#include "jitney/gpu.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <utility>

#include "jitney/elements.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {

TEST_CASE("scenario: a gpu by the public header" * doctest::skip()) {
    REQUIRE(gpu_count() >= 1);
    CHECK(gpu_info(0).index == 0);
    CHECK(gpu_info(0).arch.starts_with("sm_"));
    CHECK(gpu_info(0).multiprocessors > 0);
    CHECK_THROWS_AS(gpu_info(gpu_count()), Error);
    CHECK(default_backend() == Backend::jit);
    const GpuScope scope(0);
    CHECK(free_gpu_bytes() > 0);
    const std::array<int, 3> values = {1, -2, 3};
    GpuMemory one(sizeof values);
    const GpuMemory other(sizeof values);
    copy_to_gpu(one.data(), values.data(), sizeof values);
    copy_on_gpu(other.data(), one.data(), sizeof values);
    clear_on_gpu(one.data(), sizeof(int));
    wait_for_gpu();
    std::array<int, 3> back{};
    copy_from_gpu(back.data(), other.data(), sizeof back);
    CHECK(back == values);
    copy_from_gpu(back.data(), one.data(), sizeof back);
    CHECK(back == std::array<int, 3>{0, -2, 3});
    void* const data = one.data();
    const GpuMemory moved = std::move(one);
    CHECK(moved.data() == data);
    CHECK(moved.bytes() == sizeof values);
    CHECK(one.data() == nullptr);
}

TEST_CASE("scenario: the environment asks for the reference" * doctest::skip()) {
    CHECK(gpu_count() >= 1);
    CHECK(default_backend() == Backend::reference);
}

TEST_CASE("memory of a GPU holds what is copied to it") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a gpu by the public header", fake_gpu(cache)));
    REQUIRE_PASSED(run("scenario: the environment asks for the reference",
                       fake_gpu(cache, {{"JITNEY_BACKEND", "reference"}})));
}

TEST_CASE("without a driver there is no GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a machine without GPUs",
                       fake_gpu(cache, {{"JITNEY_LIBCUDA", "/no/such/driver"}})));
}

TEST_CASE("scenario: a machine without GPUs" * doctest::skip()) {
    CHECK(gpu_count() == 0);
    CHECK(default_backend() == Backend::reference);
    CHECK_THROWS_AS(gpu_info(0), Error);
}

TEST_CASE("An element that was set is that number of its format") {
    struct Case {
        DType dtype;
        double set;
        double got;
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const Case& each :
         {Case{DType::fp32, 0.1, static_cast<double>(0.1f)},
          Case{DType::fp16, 1.0 + 1.0 / 4096, 1.0}, Case{DType::fp16, 65536, infinity},
          Case{DType::bf16, -1.00390625, -1.0}, Case{DType::fp8_e4m3, 1000, 448},
          Case{DType::fp8_e5m2, 1.1, 1.0}, Case{DType::boolean, 2, 1}, Case{DType::int32, -7, -7},
          Case{DType::int64, 1099511627776.0, 1099511627776.0}}) {
        std::array<std::int64_t, 3> memory{};
        const Tensor tensor =
            Tensor::contiguous(memory.data(), each.dtype, {3}, {DeviceType::cpu, 0});
        set_element(tensor, 1, each.set);
        CHECK(element_of(tensor, 1) == each.got);
        CHECK(element_of(tensor, 0) == 0);
        CHECK(element_of(tensor, 2) == 0);
    }
}

}  // namespace jitney::tests
