#include "operations/fp8_linear/column_sums.hpp"

#include <doctest/doctest.h>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/column_sums_params.h"
#include "operations/fp8_linear/update.hpp"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

TEST_CASE("random matrices: the splits cover the rows, the blocks the columns") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 2000; ++i) {
        ColumnSumsProblem problem;
        problem.format = kBf16;
        problem.rows = random.chance(0.1) ? random.integer(0, 3) : random.integer(0, 100000);
        problem.cols = static_cast<int>(random.integer(1, 20000));
        CAPTURE(problem.rows);
        CAPTURE(problem.cols);
        const ColumnSumsChoice choice = choose_column_sums(problem, kHopper);
        CHECK(choice.rows_a_split * choice.splits >= problem.rows);
        CHECK((choice.splits == 1 || choice.rows_a_split * (choice.splits - 1) < problem.rows));
        CHECK(choice.column_blocks * kColumnSumsCols >= problem.cols);
        CHECK((choice.column_blocks - 1) * kColumnSumsCols < problem.cols);
        CHECK(choice.geometry.grid[0] ==
              static_cast<unsigned>(choice.column_blocks * choice.splits));
        CHECK((choice.splits > 1) == (choice.counter_bytes > 0));
    }
}

TEST_CASE("few columns are shared by many blocks") {
    ColumnSumsProblem problem;
    problem.format = kBf16;
    problem.rows = 16384;
    problem.cols = 64;
    CHECK(choose_column_sums(problem, kHopper).splits == 64);
    problem.cols = 16384;
    CHECK(choose_column_sums(problem, kHopper).splits == 1);
    CHECK(text_of(choose_column_sums(problem, kHopper).spec) ==
          "column_sums<format=bf16,out=fp32>@sm_90a");
    CHECK(choose_column_sums(problem, kHopper).geometry.programmatic);
    CHECK_FALSE(choose_column_sums(problem, typical_facts({80, 0})).geometry.programmatic);
}

TEST_CASE("fp8_update is one block") {
    const Fp8UpdateChoice choice = choose_fp8_update(kHopper);
    CHECK(text_of(choice.spec) == "fp8_update<threads=256>@sm_90a");
    CHECK(choice.geometry.grid[0] == 1);
    CHECK(choice.geometry.shared_bytes == 32);
    CHECK(choice.geometry.programmatic);
    CHECK_FALSE(choose_fp8_update(typical_facts({80, 0})).geometry.programmatic);
}

}  // namespace
}  // namespace jitney::policy
