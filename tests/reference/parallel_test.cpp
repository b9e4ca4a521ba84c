#include "operations/reference/parallel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/reference/threads.hpp"

using namespace jitney;
using namespace jitney::reference;

TEST_CASE("every index is handed out once, whatever the number of threads") {
    for (const char* threads : {"1", "2", "7"}) {
        const tests::ThreadsVariable variable(threads);
        CHECK(thread_count() == std::stoi(threads));
        std::vector<std::atomic<int>> calls(1000);
        parallel_for(1000, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
        int wrong = 0;
        for (const auto& count : calls)
            wrong += count == 1 ? 0 : 1;
        CHECK(wrong == 0);
    }
}

TEST_CASE("no index means no call") {
    parallel_for(0, [](std::int64_t) { FAIL("called"); });
    parallel_for(-3, [](std::int64_t) { FAIL("called"); });
}

TEST_CASE("an exception of a task reaches the caller, after all threads have ended") {
    const tests::ThreadsVariable variable("4");
    std::atomic<int> running{0};
    CHECK_THROWS_WITH_AS(parallel_for(100,
                                      [&](std::int64_t i) {
                                          ++running;
                                          if (i == 3) {
                                              --running;
                                              throw std::runtime_error("index 3");
                                          }
                                          --running;
                                      }),
                         "index 3", std::runtime_error);
    CHECK(running == 0);
}

TEST_CASE("a JITNEY_NUM_THREADS that is no number of threads counts as unset") {
    const tests::ThreadsVariable unset("");
    const int all = thread_count();
    CHECK(all >= 1);
    CHECK(thread_count_problem().empty());
    for (const char* each : {"0", "-2", "two", "2x", " 2", "99999999999999999999"}) {
        const std::string text = each;
        const tests::ThreadsVariable variable(text);
        CHECK(thread_count() == all);
        CHECK(thread_count_problem().find("JITNEY_NUM_THREADS is \"" + text + "\"") == 0);
    }
    const tests::ThreadsVariable good("3");
    CHECK(thread_count() == 3);
    CHECK(thread_count_problem().empty());
}
