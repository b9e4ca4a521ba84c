// The seed that a test program prints repeats what is random in it.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "tests/runtime/child.hpp"
#include "tests/support/random.hpp"
#include "tests/support/run_seed.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kVariable = "JITNEY_TEST_SEED";

std::string seed_of(const Ended& ended) {
    const std::string mark = std::string(kVariable) + "=";
    REQUIRE(ended.output.starts_with(mark));
    return ended.output.substr(mark.size(), ended.output.find('\n') - mark.size());
}

}  // namespace

TEST_CASE("scenario: random numbers" * doctest::skip()) {
    Random first = Random::fresh();
    Random second = Random::fresh();
    CHECK(first.text() == text_of_seed(run_seed()));
    CHECK(second.text() == first.text());
    std::printf("first: %llx\n", static_cast<unsigned long long>(first.bits()));
    std::printf("second: %llx\n", static_cast<unsigned long long>(second.bits()));
}

TEST_CASE("scenario: other random numbers" * doctest::skip()) {
    Random random = Random::fresh();
    std::printf("first: %llx\n", static_cast<unsigned long long>(random.bits()));
}

TEST_CASE("the seed that a run prints first repeats it, and each run draws another") {
    const Ended once = run("scenario: random numbers", {{kVariable, ""}});
    REQUIRE_PASSED(once);
    const std::string seed = seed_of(once);
    CHECK_FALSE(once.value("first").empty());
    CHECK(once.value("first") != once.value("second"));

    const Ended again = run("scenario: random numbers", {{kVariable, seed}});
    REQUIRE_PASSED(again);
    CHECK(seed_of(again) == seed);
    CHECK(again.value("first") == once.value("first"));
    CHECK(again.value("second") == once.value("second"));

    const Ended other = run("scenario: random numbers", {{kVariable, ""}});
    CHECK(seed_of(other) != seed);
    CHECK(other.value("first") != once.value("first"));

    const Ended another_test = run("scenario: other random numbers", {{kVariable, seed}});
    REQUIRE_PASSED(another_test);
    CHECK(another_test.value("first") != once.value("first"));
}

TEST_CASE("a process that a test starts has the seed of the run") {
    CHECK(seed_of(run("scenario: random numbers", {})) == std::to_string(run_seed()));
}

TEST_CASE("a process that a test starts has the last value that a variable was given") {
    for (const char* const last : {"1", "2"}) {
        const Ended ended = run("scenario: random numbers",
                                {{kVariable, "1"}, {kVariable, "2"}, {kVariable, last}});
        CHECK(seed_of(ended) == last);
    }
}

}  // namespace jitney::tests
