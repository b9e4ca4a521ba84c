#include "runtime/nvrtc.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>

#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using runtime::CompilerVersion;
using runtime::version_from_file_name;

TEST_CASE("a file name tells NVRTC's version, or the builtins beside it do") {
    namespace fs = std::filesystem;
    const tests::TemporaryDirectory root;
    const auto file = [&root](const std::string& name) {
        tests::write_file(root / name, "");
        return root / name;
    };
    CHECK(version_from_file_name(file("libnvrtc.so.12.4.127")) == CompilerVersion{12, 4});
    CHECK(version_from_file_name("/nowhere/libnvrtc.so.11.2") == CompilerVersion{11, 2});
    CHECK_FALSE(version_from_file_name("/nowhere/libnvrtc.so.13"));
    CHECK_FALSE(version_from_file_name("/nowhere/renamed.so"));
    CHECK_FALSE(version_from_file_name(file("libnvrtc.so.13")));
    file("libnvrtc-builtins.so.13.0");
    CHECK(version_from_file_name(root / "libnvrtc.so.13") == CompilerVersion{13, 0});
    file("libnvrtc-builtins.so.12.4.127");
    CHECK(version_from_file_name(root / "libnvrtc.so.13") == CompilerVersion{13, 0});
    CHECK(version_from_file_name(file("libnvrtc.so.12")) == CompilerVersion{12, 4});
    file("libnvrtc-builtins.so.13.0.48");
    CHECK(version_from_file_name(root / "libnvrtc.so.13") == CompilerVersion{13, 0});
    file("libnvrtc-builtins.so.13.1");
    CHECK_FALSE(version_from_file_name(root / "libnvrtc.so.13"));
    fs::create_symlink("libnvrtc.so.12.4.127", root / "libnvrtc.so");
    CHECK(version_from_file_name(root / "libnvrtc.so") == CompilerVersion{12, 4});
    CHECK(CompilerVersion{13, 0}.text() == "nvrtc13.0");
}

TEST_CASE("scenario: locate NVRTC" * doctest::skip()) {
    REQUIRE(runtime::nvrtc_location());
    CHECK(runtime::nvrtc_location()->version == CompilerVersion{13, 0});
    CHECK(runtime::nvrtc_location()->how == "JITNEY_LIBNVRTC");
    CHECK_FALSE(tests::is_mapped("libnvrtc"));
    CHECK(runtime::nvrtc().version == CompilerVersion{13, 0});
    CHECK(tests::is_mapped("libnvrtc.so.13"));
    CHECK(tests::is_mapped("libnvrtc-builtins.so.13.0"));
}

TEST_CASE("finding NVRTC does not open it; opening it opens its builtins") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: locate NVRTC", tests::fakes(cache.path())));
}

TEST_CASE("scenario: no compiler" * doctest::skip()) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            runtime::compile(tests::tiny_source());
            FAIL("compiled");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::no_compiler);
            std::printf("problem: %s\n", error.what());
        }
    }
}

TEST_CASE("no usable NVRTC is an error that says what to do") {
    const tests::TemporaryDirectory root;
    const auto problem = [](const tests::Variables& variables) {
        const tests::Ended ended = tests::run("scenario: no compiler", variables);
        REQUIRE_PASSED(ended);
        CHECK(ended.value("problem").find("tiny_scale<factor=3>@sm_90a has to be compiled") == 0);
        return ended.value("problem");
    };
    const auto has = [](const std::string& text, const std::string& part) {
        CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    };
    const std::string fake = tests::fake_path("libnvrtc.so.13");
    SUBCASE("missing") {
        has(problem({{"JITNEY_LIBNVRTC", root / "libnvrtc.so.13"}}), "jitney prewarm");
    }
    SUBCASE("another library") {
        has(problem({{"JITNEY_LIBNVRTC", tests::fake_path("libcuda.so.1")}}), "it is no NVRTC");
    }
    SUBCASE("too old") {
        has(problem({{"JITNEY_LIBNVRTC", fake}, {"FAKE_NVRTC_VERSION", "11.8"}}),
            "is NVRTC 11.8, older than 12.0");
    }
    SUBCASE("no builtins") {
        has(problem({{"JITNEY_LIBNVRTC", fake}, {"FAKE_NVRTC_BUILTINS", "missing"}}),
            "can't open libnvrtc-builtins.so.13.0, which belongs beside it");
    }
}
