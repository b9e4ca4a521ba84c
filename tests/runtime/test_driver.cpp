#include "runtime/driver.hpp"

#include <doctest/doctest.h>

#include <string>

#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using tests::fake_path;

TEST_CASE("scenario: no usable driver" * doctest::skip()) {
    CHECK_FALSE(runtime::driver_available());
    CHECK(runtime::device_count() == 0);
    std::string first;
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            runtime::driver();
            FAIL("there is a driver");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::no_device);
            if (attempt != 0) CHECK(first == error.what());
            first = error.what();
        }
    }
    CHECK_THROWS_AS(runtime::device(0), Error);
    CHECK_THROWS_AS(runtime::current_device(), Error);
    std::printf("problem: %s\n", first.c_str());
}

TEST_CASE("a machine without a usable driver says why, and only when a GPU is needed") {
    const auto problem = [](const tests::Variables& variables) {
        const tests::Ended ended = tests::run("scenario: no usable driver", variables);
        REQUIRE_PASSED(ended);
        return ended.value("problem");
    };
    const auto has = [](const std::string& text, const std::string& part) {
        CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    };
    const std::string fake = fake_path("libcuda.so.1");
    SUBCASE("none") {
        has(problem({{"JITNEY_LIBCUDA", "/nowhere/libcuda.so.1"}}),
            "JITNEY_LIBCUDA is \"/nowhere/libcuda.so.1\", which can't be opened");
    }
    SUBCASE("no GPU") {
        has(problem({{"JITNEY_LIBCUDA", fake}, {"FAKE_CUDA_INIT", "100"}}), "sees no GPU");
    }
    SUBCASE("cuInit fails") {
        has(problem({{"JITNEY_LIBCUDA", fake}, {"FAKE_CUDA_INIT", "803"}}),
            "cuInit returned error 803");
    }
    SUBCASE("too old") {
        has(problem({{"JITNEY_LIBCUDA", fake}, {"FAKE_CUDA_VERSION", "11080"}}),
            "supports CUDA 11.8, and Jitney needs 12.0 or newer");
    }
    SUBCASE("another library") {
        const std::string text =
            problem({{"JITNEY_LIBCUDA", fake_path("libnvrtc-builtins.so.13.0")}});
        has(text, "is no CUDA driver, it has no cuInit: let JITNEY_LIBCUDA name");
        CHECK(text.find("update") == std::string::npos);
    }
}

TEST_CASE("scenario: driver errors" * doctest::skip()) {
    const auto error_of = [](int result) {
        try {
            runtime::check(static_cast<CUresult>(result), "doing something");
        } catch (const Error& error) {
            return error;
        }
        FAIL("no error");
        return Error(ErrorCode::internal, "");
    };
    CHECK_NOTHROW(runtime::check(CUDA_SUCCESS, "doing something"));
    const Error memory = error_of(CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(memory.code() == ErrorCode::out_of_memory);
    CHECK(std::string(memory.what()) ==
          "doing something: the CUDA driver returned CUDA_ERROR_OUT_OF_MEMORY (what the fake "
          "says)");
    CHECK(error_of(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED).code() == ErrorCode::capture);
    const Error sticky = error_of(CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(sticky.code() == ErrorCode::driver);
    CHECK(std::string(sticky.what()).find("an earlier kernel") != std::string::npos);
    CHECK(std::string(error_of(99).what()).find("error 99") != std::string::npos);
    CHECK(runtime::driver_status().version == 13000);
    CHECK(runtime::version_text(12040) == "12.4");
    CHECK(tests::fake_cuda().inits == 1);
}

TEST_CASE("driver results become errors that name the call") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: driver errors", tests::fakes(cache.path())));
}
