#include "runtime/launch.hpp"

#include <cuda.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tensor_map.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;
using Triple = std::array<unsigned, 3>;

TEST_CASE("scenario: launch" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = tests::fake_cuda();
    const Kernel& kernel =
        runtime::runtime().kernel(tests::tiny_key(), 0, tests::tiny_describe(), nullptr);
    CHECK(kernel.shared_bytes == 3 * 1024);
    CHECK(kernel.registers == 40);
    CHECK(fake.shared_granted == 3 * 1024);
    auto* stream = reinterpret_cast<Stream>(std::uintptr_t{0x77});
    LaunchShape shape;
    shape.grid = {5, 6, 7};
    shape.block = {128, 1, 1};
    shape.shared_bytes = 3072;
    launch(kernel, shape, nullptr, stream);
    CHECK(fake.launch.grid == Triple{5, 6, 7});
    CHECK(fake.launch.block == Triple{128, 1, 1});
    CHECK(fake.launch.shared_bytes == 3072);
    CHECK(fake.launch.attributes == 0);
    CHECK(fake.launch.stream == stream);
    CHECK(fake.launch.function == kernel.handle);

    shape.cluster = {2, 1, 1};
    launch(kernel, shape, nullptr, stream);
    CHECK(fake.launch.attributes == 1);
    CHECK(fake.launch.cluster == Triple{2, 1, 1});
    CHECK_FALSE(fake.launch.programmatic);

    shape.cluster = {};
    shape.programmatic_dependent = true;
    launch(kernel, shape, nullptr, stream);
    CHECK(fake.launch.attributes == 1);
    CHECK(fake.launch.programmatic);

    shape.cluster = {1, 2, 1};
    launch(kernel, shape, nullptr, stream);
    CHECK(fake.launch.attributes == 2);

    const std::array<unsigned char, 6> packed = {1, 2, 3, 4, 5, 6};
    launch_packed(kernel, shape, packed.data(), packed.size(), stream);
    CHECK(fake.launch.attributes == 2);
    CHECK(fake.launch.packed_bytes == 6);
    CHECK(std::equal(packed.begin(), packed.end(), fake.launch.packed.begin()));

    fake.launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
    try {
        launch(kernel, shape, nullptr, stream);
        FAIL("launched");
    } catch (const Error& error) {
        const std::string what = error.what();
        CHECK(error.code() == ErrorCode::driver);
        CHECK(what.find("5x6x7 blocks of 128x1x1 threads") != std::string::npos);
        CHECK(what.find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
        CHECK(what.find("compute-sanitizer") != std::string::npos);
    }
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("a launch passes its shape, and attributes only where they are set") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: launch", tests::fakes(cache.path())));
}

TEST_CASE("scenario: tensor maps" * doctest::skip()) {
    fake::Cuda& fake = tests::fake_cuda();
    const auto* base = reinterpret_cast<const void*>(std::uintptr_t{0x10000});
    TensorMapShape shape;
    shape.rank = 4;
    shape.dtype = DType::bf16;
    shape.size = {128, 8, 4096, 2};
    shape.stride_bytes = {256, 2048, 8388608};
    shape.box = {64, 1, 128, 1};
    shape.swizzle = Swizzle::bytes128;
    const TensorMap map = make_tensor_map(base, shape);
    CHECK(map.opaque[0] == 0x10000);
    CHECK(map.opaque[1] == 0x5a5a5a5a5a5a5a5a);
    CHECK(reinterpret_cast<std::uintptr_t>(&map) % 64 == 0);
    CHECK(fake.map.rank == 4);
    CHECK(fake.map.type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    CHECK(fake.map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B);
    CHECK(fake.map.size == std::array<std::uint64_t, 5>{128, 8, 4096, 2, 0});
    CHECK(fake.map.stride == std::array<std::uint64_t, 4>{256, 2048, 8388608, 0});
    CHECK(fake.map.box == std::array<std::uint32_t, 5>{64, 1, 128, 1, 0});

    const auto refused = [&](TensorMapShape bad, std::uintptr_t offset = 0) {
        try {
            make_tensor_map(static_cast<const char*>(base) + offset, bad);
        } catch (const Error& error) {
            return error.code() == ErrorCode::invalid_argument;
        }
        return false;
    };
    TensorMapShape bad = shape;
    CHECK_FALSE(refused(bad));
    CHECK(refused(bad, 8));
    bad.rank = 1;
    CHECK(refused(bad));
    bad = shape;
    bad.stride_bytes[1] = 2040;
    CHECK(refused(bad));
    bad = shape;
    bad.box[2] = 257;
    CHECK(refused(bad));
    bad = shape;
    bad.box[0] = 128;  // 256 bytes in a row that swizzles over 128
    CHECK(refused(bad));
    bad.swizzle = Swizzle::none;
    CHECK_FALSE(refused(bad));
    bad = shape;
    bad.size[3] = 0;
    CHECK(refused(bad));
    bad = shape;
    bad.dtype = DType::fp8_e4m3;
    CHECK_FALSE(refused(bad));
    CHECK(fake.map.type == CU_TENSOR_MAP_DATA_TYPE_UINT8);
}

TEST_CASE("scenario: maps that addresses lead" * doctest::skip()) {
    fake::Cuda& fake = tests::fake_cuda();
    CHECK(addresses_lead_maps());
    CHECK(fake.maps == 2);
    // What is known is not asked again.
    fake.address_in_maps = 64;
    CHECK(addresses_lead_maps());
    CHECK(fake.maps == 2);
}

TEST_CASE("scenario: maps that addresses do not lead" * doctest::skip()) {
    tests::fake_cuda().address_in_maps = 64;
    CHECK_FALSE(addresses_lead_maps());
}

TEST_CASE("whether addresses lead tensor maps is found out, and not believed") {
    for (const char* scenario :
         {"scenario: maps that addresses lead", "scenario: maps that addresses do not lead"}) {
        const tests::TemporaryDirectory cache;
        REQUIRE_PASSED(tests::run(scenario, tests::fakes(cache.path())));
    }
}

TEST_CASE("tensor maps are encoded, and what TMA can't do is refused") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: tensor maps", tests::fakes(cache.path())));
}
