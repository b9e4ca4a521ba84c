#include <doctest/doctest.h>

#include "runtime/environment.hpp"
#include "runtime/log.hpp"
#include "tests/runtime/child.hpp"

using namespace jitney;

TEST_CASE("scenario: one message of each level" * doctest::skip()) {
    runtime::log::debug("a debug message");
    runtime::log::info("an info message");
    runtime::log::warn("a warn message");
    runtime::log::warn("braces { {} } stay");
}

TEST_CASE("JITNEY_LOG chooses what is said") {
    const auto said = [](const std::string& level) {
        const tests::Ended ended =
            tests::run("scenario: one message of each level", {{"JITNEY_LOG", level}});
        REQUIRE_PASSED(ended);
        return ended;
    };
    SUBCASE("debug") {
        CHECK(said("debug").count(" message") == 3);
    }
    SUBCASE("info") {
        CHECK(said("info").count(" message") == 2);
    }
    SUBCASE("warn") {
        CHECK(said("warn").count(" message") == 1);
    }
    SUBCASE("unset") {
        CHECK(said("").count("[jitney] [warning] a warn message") == 1);
    }
    SUBCASE("text is no format") {
        CHECK(said("").count("braces { {} } stay") == 1);
    }
    SUBCASE("off") {
        CHECK(said("off").count("[jitney]") == 0);
    }
    SUBCASE("unknown") {
        const tests::Ended ended = said("loud");
        CHECK(ended.count("JITNEY_LOG is \"loud\"") == 1);
        CHECK(ended.count(" message") == 1);
    }
}

TEST_CASE("scenario: is compiling allowed" * doctest::skip()) {
    CHECK(runtime::jit_enabled() == (std::string(std::getenv("EXPECTED")) == "yes"));
    CHECK(runtime::jit_enabled() == runtime::jit_enabled());
}

TEST_CASE("JITNEY_JIT is on, off, or a warning") {
    const auto check = [](const std::string& value, const std::string& expected, int warnings) {
        const tests::Ended ended = tests::run("scenario: is compiling allowed",
                                              {{"JITNEY_JIT", value}, {"EXPECTED", expected}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("JITNEY_JIT is") == warnings);
    };
    check("off", "no", 0);
    check("0", "no", 0);
    check("on", "yes", 0);
    check("", "yes", 0);
    check("sometimes", "yes", 1);
}
