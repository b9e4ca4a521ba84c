#include "runtime/device.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "jitney/error.hpp"
#include "runtime/driver.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;

TEST_CASE("scenario: several devices" * doctest::skip()) {
    CHECK(device_count() == 3);
    CHECK(device(0).arch == "sm_90a");
    CHECK(device(1).arch == "sm_80");
    CHECK(device(1).ordinal == 1);
    CHECK(device(0).multiprocessors == 132);
    CHECK(&device(2) == &device(2));
    CHECK_THROWS_AS(device(3), Error);
    CHECK_THROWS_AS(device(-1), Error);

    // A thread without a context gets the primary one of the device asked for, once.
    fake::Cuda& fake = tests::fake_cuda();
    CHECK(fake.retains == 0);
    CHECK(current_device(1).ordinal == 1);
    CHECK(current_device(0).ordinal == 1);
    CHECK(fake.retains == 1);
    std::thread([] { CHECK(current_device().ordinal == 0); }).join();
    std::thread([] { CHECK(current_device(1).ordinal == 1); }).join();
    CHECK(fake.retains == 2);

    {
        const DeviceScope same(1);
        CHECK(current_device().ordinal == 1);
        const DeviceScope other(2);
        CHECK(current_device().ordinal == 2);
        CHECK(current_device().arch == "sm_90a");
    }
    CHECK(current_device().ordinal == 1);
    CUcontext context = nullptr;
    CHECK(driver().cuCtxPopCurrent(&context) == CUDA_SUCCESS);
    CHECK(driver().cuCtxPopCurrent(&context) != CUDA_SUCCESS);  // the scopes left nothing behind
}

TEST_CASE("devices are told apart, and contexts are borrowed") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: several devices",
                              tests::fakes(cache.path(), {{"FAKE_CUDA_DEVICES", "90,80,90"}})));
}
