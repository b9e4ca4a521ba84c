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

TEST_CASE("scenario: choose an NVRTC" * doctest::skip()) {
    REQUIRE(runtime::nvrtc_location());
    std::printf("located: %s\n", runtime::nvrtc_location()->path.c_str());
    const std::string opened = runtime::nvrtc().path;
    std::printf("opened: %s\n", opened.c_str());
    for (const std::string& path : runtime::passed_over_nvrtc(opened))
        std::printf("passed over: %s\n", path.c_str());
    for (const std::string& text : runtime::refused_nvrtc(opened))
        std::printf("refused: %s\n", text.c_str());
}

TEST_CASE("an NVRTC that is newer than the driver gives way to an older one") {
    namespace fs = std::filesystem;
    const tests::TemporaryDirectory root;
    const std::string newer = root / "libnvrtc.so.13";
    const std::string older = root / "libnvrtc.so.12";
    fs::copy_file(tests::fake_path("libnvrtc.so.13"), newer);
    fs::copy_file(tests::fake_path("libnvrtc.so.13"), older);
    const std::string fake = tests::fake_path("libcuda.so.1");
    const auto choose = [&root](const std::string& driver, const char* version,
                                const tests::Variables& more = {}) {
        tests::Variables variables = {{"JITNEY_LIBCUDA", driver},
                                      {"FAKE_CUDA_VERSION", version},
                                      {"LD_LIBRARY_PATH", root.path()}};
        variables.insert(variables.end(), more.begin(), more.end());
        tests::Ended ended = tests::run("scenario: choose an NVRTC", variables);
        REQUIRE_PASSED(ended);
        CHECK(ended.value("located") == ended.value("opened"));
        return ended;
    };
    const tests::Ended old = choose(fake, "12040");
    CHECK(old.value("opened") == older);
    CHECK(old.value("passed over") == newer);
    CHECK(choose(fake, "13000").value("opened") == newer);
    CHECK(choose(fake, "13000").count("passed over") == 0);
    CHECK(choose(fake, "12040", {{"JITNEY_LIBNVRTC", newer}}).value("opened") == newer);
    CHECK(choose(root / "none", "12040").value("opened") == newer);
    // Where there is no older one, the newer one is better than none.
    fs::remove(older);
    CHECK(choose(fake, "12040").value("opened") == newer);
}

TEST_CASE("an NVRTC that is none gives way to another") {
    namespace fs = std::filesystem;
    const tests::TemporaryDirectory root;
    const std::string program = root / "test";
    fs::copy_file(tests::own_program(), program);
    fs::copy_file(tests::fake_path("libcuda.so.1"), root / "libnvrtc.so.13");
    fs::copy_file(tests::fake_path("libnvrtc.so.13"), root / "libnvrtc.so.12");
    const tests::Ended ended =
        tests::Child("scenario: choose an NVRTC", {{"JITNEY_LIBCUDA", root / "none"}}, ".", program)
            .wait();
    REQUIRE_PASSED(ended);
    CHECK(ended.value("opened") == root / "libnvrtc.so.12");
}

TEST_CASE("an NVRTC whose builtins others could have put there is not opened") {
    namespace fs = std::filesystem;
    const tests::TemporaryDirectory root;
    for (const std::string directory : {"app/bin/", "app/lib/"}) {
        fs::create_directories(root / directory);
        for (const char* file : {"libnvrtc.so.13", "libnvrtc-builtins.so.13.0"})
            fs::copy_file(tests::fake_path(file), root / (directory + file));
    }
    const std::string program = root / "app/bin/test";
    fs::copy_file(tests::own_program(), program);
    const auto choose = [&program] {
        tests::Ended ended = tests::Child("scenario: choose an NVRTC", {}, ".", program).wait();
        REQUIRE_PASSED(ended);
        return ended;
    };
    CHECK(choose().value("opened") == root / "app/bin/libnvrtc.so.13");
    fs::permissions(root / "app/bin/libnvrtc-builtins.so.13.0", fs::perms::all);
    const tests::Ended ended = choose();
    CHECK(ended.value("opened") == root / "app/lib/libnvrtc.so.13");
    CHECK(ended.value("refused").find("app/bin/libnvrtc-builtins.so.13.0, which can be written") !=
          std::string::npos);
}
