#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/nvrtc.hpp"
#include "tests/runtime/child.hpp"

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
