#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/dynamic_library.hpp"
#include "runtime/loader_path.hpp"
#include "tests/runtime/child.hpp"

using namespace jitney;
using tests::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

constexpr std::array kSonames = {"libjitneytest.so.2", "libjitneytest.so.1"};
constexpr std::array kPackages = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
constexpr runtime::LibrarySearch kSearch = {.name = "the test",
                                            .variable = "JITNEY_LIBTEST",
                                            .sonames = kSonames,
                                            .toolkit = true,
                                            .packages = kPackages};

void put_library(const fs::path& path) {
    fs::create_directories(path.parent_path());
    fs::copy_file(tests::fake_path("libnvrtc-builtins.so.13.0"), path);
}

}  // namespace

TEST_CASE("scenario: list what the search finds" * doctest::skip()) {
    const std::vector<runtime::FoundLibrary> found = runtime::find_libraries(kSearch);
    for (const auto& each : found) {
        std::printf("found: %s by %s\n", each.path.c_str(), each.how.c_str());
        if (!each.refusal.empty()) std::printf("refused: %s\n", each.refusal.c_str());
    }
    const runtime::OpenedLibrary opened = runtime::open_library(kSearch, found);
    std::printf("mapped: %s\n", tests::is_mapped("libjitneytest.so") ? "yes" : "no");
    std::printf("opened: %s\n", opened.library.path().c_str());
    std::printf("error: %s\n", opened.error.c_str());
}

TEST_CASE("libraries are searched in the documented order") {
    const TemporaryDirectory root;
    fs::create_directories(root / "app/bin");
    const std::string program = root / "app/bin/test";
    fs::copy_file(tests::own_program(), program);
    const std::vector<std::string> order = {
        root / "app/bin/libjitneytest.so.2",
        root / "app/bin/libjitneytest.so.1",
        root / "app/lib/libjitneytest.so.1",
        root / "app/cuda/lib/libjitneytest.so.1",
        root / "app/cuda/lib64/libjitneytest.so.1",
        root / "loader/libjitneytest.so.2",
        root / "loader/libjitneytest.so.1",
        root / "home/lib64/libjitneytest.so.1",
        root / "home/targets/x86_64-linux/lib/libjitneytest.so.2",
        root / "path/lib/libjitneytest.so.2",
        root / "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libjitneytest.so.2",
        root / "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libjitneytest.so.1",
        root / "conda/lib/libjitneytest.so.1"};
    for (const std::string& path : order)
        put_library(path);
    const tests::Ended ended = tests::Child("scenario: list what the search finds",
                                            {{"LD_LIBRARY_PATH", root / "loader"},
                                             {"CUDA_HOME", root / "home"},
                                             {"CUDA_PATH", root / "path"},
                                             {"VIRTUAL_ENV", root / "venv"},
                                             {"CONDA_PREFIX", root / "conda"}},
                                            ".", program)
                                   .wait();
    REQUIRE_PASSED(ended);
    std::size_t at = 0;
    for (const std::string& path : order) {
        const std::size_t found = ended.output.find("found: " + path + " by ");
        INFO(ended.output);
        REQUIRE_MESSAGE(found != std::string::npos, path);
        CHECK_MESSAGE(found >= at, path);
        at = found;
    }
    CHECK(ended.value("opened") == order.front());
}

TEST_CASE("the environment variable alone is tried where it is set") {
    const TemporaryDirectory root;
    put_library(root / "loader/libjitneytest.so.2");
    put_library(root / "mine.so");
    SUBCASE("and works") {
        const tests::Ended ended = tests::run(
            "scenario: list what the search finds",
            {{"JITNEY_LIBTEST", root / "mine.so"}, {"LD_LIBRARY_PATH", root / "loader"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.value("opened") == root / "mine.so");
        CHECK(ended.count("found: ") == 1);
    }
    SUBCASE("and is believed, whoever could write it") {
        fs::permissions(root / "mine.so", fs::perms::all);
        fs::permissions(root.path(), fs::perms::all);
        const tests::Ended ended = tests::run("scenario: list what the search finds",
                                              {{"JITNEY_LIBTEST", root / "mine.so"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.value("opened") == root / "mine.so");
    }
    SUBCASE("and depends on where the process stands") {
        const tests::Ended ended = tests::Child("scenario: list what the search finds",
                                                {{"JITNEY_LIBTEST", "./mine.so"}}, root.path())
                                       .wait();
        REQUIRE_PASSED(ended);
        CHECK(ended.value("opened").empty());
        CHECK(
            ended.value("error").find("JITNEY_LIBTEST is \"./mine.so\", which can't be opened (it "
                                      "is not a full path)") == 0);
    }
    SUBCASE("and names nothing that can be opened") {
        const tests::Ended ended = tests::run(
            "scenario: list what the search finds",
            {{"JITNEY_LIBTEST", root / "none.so"}, {"LD_LIBRARY_PATH", root / "loader"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.value("opened").empty());
        CHECK(ended.value("error").find("JITNEY_LIBTEST is \"" + (root / "none.so") + "\"") == 0);
    }
}

TEST_CASE("a library that can't be opened gives way to the next") {
    const TemporaryDirectory root;
    fs::create_directories(root / "loader");
    tests::write_file(root / "loader/libjitneytest.so.2", "no library");
    put_library(root / "loader/libjitneytest.so.1");
    const tests::Ended ended =
        tests::run("scenario: list what the search finds", {{"LD_LIBRARY_PATH", root / "loader"}});
    REQUIRE_PASSED(ended);
    CHECK(ended.value("opened") == root / "loader/libjitneytest.so.1");
}

TEST_CASE("a library that others could have put there is not opened") {
    const TemporaryDirectory root;
    fs::create_directories(root / "app/bin");
    const std::string program = root / "app/bin/test";
    fs::copy_file(tests::own_program(), program);
    const auto ended_with = [&program](const tests::Variables& variables) {
        tests::Ended ended =
            tests::Child("scenario: list what the search finds", variables, ".", program).wait();
        REQUIRE_PASSED(ended);
        return ended;
    };
    const auto check_refused = [](const tests::Ended& ended, const std::string& path,
                                  const std::string& why) {
        INFO(ended.output);
        CHECK(ended.count("found: " + path + " by ") == 1);
        CHECK(ended.value("refused").find(why) == 0);
        CHECK(ended.value("opened").empty());
        CHECK(ended.value("mapped") == "no");
        CHECK(ended.count("[warning] " + path + " (") == 1);
        CHECK(ended.count("or set JITNEY_LIBTEST to its full path if you trust it") == 1);
        CHECK(ended.value("error").find(why) != std::string::npos);
    };
    SUBCASE("beside the program") {
        const std::string path = root / "app/bin/libjitneytest.so.1";
        put_library(path);
        CHECK(ended_with({}).value("opened") == path);
        for (const mode_t mode : {mode_t{0777}, mode_t{01777}, mode_t{0775}}) {
            REQUIRE(chmod((root / "app/bin").c_str(), mode) == 0);
            check_refused(ended_with({}), path, "lies ");
        }
        REQUIRE(chmod((root / "app/bin").c_str(), 0755) == 0);
        REQUIRE(chmod(path.c_str(), 0666) == 0);
        check_refused(ended_with({}), path, "can be written by others (mode 0666)");
        REQUIRE(chmod(path.c_str(), 0644) == 0);
        REQUIRE(chmod((root / "app").c_str(), 0777) == 0);
        check_refused(ended_with({}), path, "lies below " + (root / "app"));
        // Another one gets its turn.
        put_library(root / "loader/libjitneytest.so.1");
        const tests::Ended other = ended_with({{"LD_LIBRARY_PATH", root / "loader"}});
        CHECK(other.value("opened") == root / "loader/libjitneytest.so.1");
    }
    SUBCASE("in the run path of the program") {
        const std::string path = root / "app/bin/run-path/libjitneytest.so.1";
        put_library(path);
        CHECK(ended_with({}).value("opened") == path);
        REQUIRE(chmod((root / "app/bin/run-path").c_str(), 0777) == 0);
        check_refused(ended_with({}), path, "lies below " + (root / "app/bin/run-path"));
    }
    SUBCASE("in a package of Python") {
        const std::string path =
            root / "venv/lib/python3.11/site-packages/nvidia/cu13/lib/libjitneytest.so.2";
        put_library(path);
        const tests::Variables variables = {{"VIRTUAL_ENV", root / "venv"}};
        CHECK(ended_with(variables).value("opened") == path);
        REQUIRE(chmod((root / "venv").c_str(), 0777) == 0);
        check_refused(ended_with(variables), path, "lies below " + (root / "venv"));
    }
    SUBCASE("of another user") {
        if (geteuid() != 0) {
            MESSAGE("skipped: only the superuser can give a file away");
            return;
        }
        const std::string path = root / "app/lib/libjitneytest.so.2";
        put_library(path);
        REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
        check_refused(ended_with({}), path, "belongs to user 65534, not to user 0");
    }
}

TEST_CASE("nothing anywhere is an error that names what was looked for") {
    const tests::Ended ended = tests::run("scenario: list what the search finds", {});
    REQUIRE_PASSED(ended);
    CHECK(ended.value("opened").empty());
    CHECK(ended.value("error") == "libjitneytest.so.2 or libjitneytest.so.1 was found nowhere");
}

TEST_CASE("a library that the process has loaded is known by its soname") {
    const std::string path = tests::fake_path("libnvrtc-builtins.so.13.0");
    CHECK(runtime::path_of_loaded("libjitneytest.so.9").empty());
    void* handle = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(handle != nullptr);
    CHECK(runtime::path_of_loaded("libjitneytest.so.9") == path);
    dlclose(handle);
    CHECK(runtime::path_of_loaded("libjitneytest.so.9").empty());
}

namespace {

// A loader's cache with one entry of each pair.
std::string cache_of(const std::vector<std::pair<std::string, std::string>>& entries,
                     std::uint32_t flags) {
    const auto word = [](std::uint32_t value) {
        return std::string(reinterpret_cast<const char*>(&value), sizeof value);
    };
    std::string bytes = "glibc-ld.so.cache1.1";
    bytes += word(static_cast<std::uint32_t>(entries.size()));
    bytes.resize(48);
    std::size_t at = 48 + 24 * entries.size();
    std::string strings;
    for (const auto& [name, path] : entries) {
        bytes += word(flags) + word(static_cast<std::uint32_t>(at + strings.size()));
        strings += name + '\0';
        bytes += word(static_cast<std::uint32_t>(at + strings.size())) + std::string(12, '\0');
        strings += path + '\0';
    }
    return bytes + strings;
}

#if defined(__x86_64__)
constexpr std::uint32_t kFlags = 0x0303;
#else
constexpr std::uint32_t kFlags = 0x0a03;
#endif

}  // namespace

TEST_CASE("the loader's cache tells paths, and no bytes of it are trusted") {
    const std::string cache =
        cache_of({{"libone.so", "/a/libone.so"}, {"libtwo.so", "/b/libtwo.so"}}, kFlags);
    using runtime::paths_in_loader_cache;
    CHECK(paths_in_loader_cache(cache, "libtwo.so") == std::vector<std::string>{"/b/libtwo.so"});
    CHECK(paths_in_loader_cache("old format" + cache, "libone.so").size() == 1);
    CHECK(paths_in_loader_cache(cache, "libthree.so").empty());
    CHECK(paths_in_loader_cache(cache_of({{"libone.so", "/a"}}, 0x0003), "libone.so").empty());
    for (std::size_t length = 0; length < cache.size(); ++length) {
        const std::string cut(cache.substr(0, length));
        CHECK(paths_in_loader_cache(cut, "libtwo.so").size() <= 1);
    }
    std::string lying = cache;
    std::memset(lying.data() + 20, 0xff, 4);  // the number of entries
    CHECK(paths_in_loader_cache(lying, "libone.so").empty());
}
