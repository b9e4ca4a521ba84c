#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/nvrtc.hpp"
#include "runtime/prewarm.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using tests::TemporaryDirectory;

TEST_CASE("processes and threads that want one kernel compile it once") {
    const TemporaryDirectory root;
    const tests::Variables variables =
        tests::fakes(root / "cache",
                     {{"FAKE_NVRTC_COMPILES", root / "compiles"}, {"FAKE_NVRTC_DELAY_MS", "300"}});
    std::vector<tests::Child> children;
    for (int i = 0; i < 8; ++i)
        children.emplace_back("scenario: many threads", variables);
    for (tests::Child& child : children) {
        const tests::Ended ended = child.wait();
        REQUIRE_PASSED(ended);
    }
    const std::string compiles = tests::read_file(root / "compiles");
    CHECK(std::count(compiles.begin(), compiles.end(), '\n') == 1);
}

TEST_CASE("without locks, all who compile succeed") {
    const TemporaryDirectory root;
    const tests::Variables variables =
        tests::fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"},
                                      {"FAKE_NVRTC_DELAY_MS", "100"},
                                      {"JITNEY_CACHE_LOCK_TIMEOUT_MS", "0"}});
    std::vector<tests::Child> children;
    for (int i = 0; i < 4; ++i)
        children.emplace_back("scenario: one load", variables);
    for (tests::Child& child : children) {
        const tests::Ended ended = child.wait();
        REQUIRE_PASSED(ended);
    }
    const std::string compiles = tests::read_file(root / "compiles");
    CHECK(std::count(compiles.begin(), compiles.end(), '\n') <= 4);
}

TEST_CASE("scenario: a fork amid a compile" * doctest::skip()) {
    const std::string compiles = std::getenv("FAKE_NVRTC_COMPILES");
    std::thread compiling([] {
        const runtime::PrewarmResult result = runtime::prewarm(tests::tiny_source("sm_90a"));
        CHECK(result.status == runtime::PrewarmStatus::compiled);
    });
    while (tests::read_file(compiles).empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(20);
        for (const char* arch : {"sm_90a", "sm_80"}) {
            const runtime::PrewarmResult result = runtime::prewarm(tests::tiny_source(arch));
            const bool told = result.status == runtime::PrewarmStatus::failed &&
                              result.error.find("was forked while") != std::string::npos;
            // The kernel that the parent compiles may be on disk by now.
            const bool found = result.status == runtime::PrewarmStatus::cached;
            if (!told && !(found && std::string(arch) == "sm_90a")) ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    compiling.join();
    // The parent goes on as before, and so do children that were forked while nothing compiled.
    CHECK(runtime::prewarm(tests::tiny_source("sm_80")).status == runtime::PrewarmStatus::compiled);
    const pid_t quiet = ::fork();
    REQUIRE(quiet >= 0);
    if (quiet == 0) {
        ::alarm(20);
        const runtime::PrewarmResult result = runtime::prewarm(tests::tiny_source("sm_75"));
        ::_exit(result.status == runtime::PrewarmStatus::compiled ? 0 : 1);
    }
    REQUIRE(::waitpid(quiet, &status, 0) == quiet);
    CHECK(status == 0);
}

TEST_CASE("a child that is forked amid a compile gets an error, and waits for nothing") {
    const TemporaryDirectory root;
    const tests::Ended ended = tests::run(
        "scenario: a fork amid a compile",
        tests::fakes(root / "cache",
                     {{"FAKE_NVRTC_COMPILES", root / "compiles"}, {"FAKE_NVRTC_DELAY_MS", "400"}}));
    REQUIRE_PASSED(ended);
}

TEST_CASE("the real NVRTC is not opened by a warm start") {
    if (!runtime::nvrtc_location()) {
        MESSAGE("skipped: no NVRTC here");
        return;
    }
    const TemporaryDirectory root;
    tests::Variables variables = tests::fakes(root / "cache");
    variables[1].second = runtime::nvrtc_location()->path;
    const tests::Ended cold = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(cold);
    CHECK(cold.value("mapped") == "yes");
    const tests::Ended warm = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(warm);
    CHECK(warm.value("mapped") == "no");
    CHECK(warm.value("compiled") == "0");
}
