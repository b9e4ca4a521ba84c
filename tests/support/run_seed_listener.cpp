// Every test program says at its start which seed repeats the run.
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/support/run_seed.hpp"

namespace jitney::tests {
namespace {

struct RunSeedListener : doctest::IReporter {
    explicit RunSeedListener(const doctest::ContextOptions&) {}
    void test_run_start() override {
        std::printf("%s\n", text_of_seed(run_seed()).c_str());
        std::fflush(stdout);
    }
    void test_case_start(const doctest::TestCaseData& test_case) override {
        begin_numbers_of(test_case.m_name);
    }

    void report_query(const doctest::QueryData&) override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("run_seed", 1, RunSeedListener);

}  // namespace
}  // namespace jitney::tests
