// Scores far from 0 and NaN: what they reach, and what they leave alone.
#include "operations/attention/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/reference/counting_problem.hpp"

using namespace jitney;
using namespace jitney::tests;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("very low scores are scores, not masked") {
    for (const double score : {-6e4, -1e6, -1e30}) {
        Random random(1);
        AttentionShape shape = small(1, 66);
        shape.scale = 1.0;
        AttentionProblem problem(shape, random);
        problem.q.set(0, 1.0);
        problem.k.fill([&](std::int64_t) { return score; });
        problem.v.fill([](std::int64_t i) { return static_cast<double>(i + 1); });
        reference::attention(problem.reference_call());
        CHECK(problem.out.get(0) == doctest::Approx(33.5).epsilon(1e-6));
        CHECK(problem.lse.get(0) == doctest::Approx(score + std::log(66.0)).epsilon(1e-6));
    }
}

TEST_CASE("very high scores do not overflow") {
    Random random(1);
    AttentionShape shape = small(1, 130);
    shape.scale = 1.0;
    AttentionProblem problem(shape, random);
    problem.q.set(0, 1.0);
    problem.k.fill([](std::int64_t i) { return i == 129 ? 1e30 : -1e30; });
    problem.v.fill([](std::int64_t i) { return static_cast<double>(i); });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == 129.0);
}

TEST_CASE("NaN in keys and values that a row does not see never reaches it") {
    AttentionShape shape = small(4, 150);
    shape.head_dim = 8;
    SUBCASE("hidden by the mask") {
        shape.mask = MaskKind::keys;
        AttentionProblem problem = counting_problem(shape);
        problem.mask->fill([](std::int64_t i) { return i % 3 == 0 ? 0.0 : 1.0; });
        for (std::int64_t j = 0; j < 150; j += 3) {
            for (std::int64_t d = 0; d < 8; ++d) {
                problem.k.put({0, j, 0, d}, d % 2 == 0 ? kNan : kInf);
                problem.v.put({0, j, 0, d}, d % 2 == 0 ? kNan : -kInf);
            }
        }
        reference::attention(problem.reference_call());
        for (std::int64_t i = 0; i < problem.out.elements(); ++i) {
            // The mean of 2, 3, 5, 6, 8, 9, ..., 150.
            CHECK(problem.out.get(i) == doctest::Approx(76.0).epsilon(1e-6));
        }
    }
    SUBCASE("in the future") {
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        for (std::int64_t d = 0; d < 8; ++d) {
            problem.k.put({0, 149, 0, d}, kNan);
            problem.v.put({0, 149, 0, d}, kNan);
        }
        reference::attention(problem.reference_call());
        CHECK(problem.out.at({0, 0, 0, 0}) == doctest::Approx(74.0).epsilon(1e-6));
        CHECK(problem.out.at({0, 2, 0, 7}) == doctest::Approx(75.0).epsilon(1e-6));
        CHECK(std::isnan(problem.out.at({0, 3, 0, 0})));
        CHECK(std::isnan(problem.lse.at({0, 0, 3})));
    }
}

TEST_CASE("NaN in a query, a key or a value that is seen stays NaN, in its own rows only") {
    for (const int where : {0, 1, 2}) {
        Random random(1);
        AttentionShape shape = small(2, 140);
        shape.batch = 2;
        shape.head_dim = 4;
        AttentionProblem problem(shape, random);
        if (where == 0) problem.q.put({0, 1, 0, 2}, kNan);
        if (where == 1) problem.k.put({0, 70, 0, 2}, kNan);
        if (where == 2) problem.v.put({0, 70, 0, 2}, kNan);
        reference::attention(problem.reference_call());
        CAPTURE(where);
        CHECK(std::isnan(problem.out.at({0, 1, 0, 2})));
        CHECK(std::isnan(problem.out.at({0, 1, 0, 3})) == (where != 2));
        CHECK(std::isnan(problem.out.at({0, 0, 0, 2})) == (where != 0));
        CHECK(std::isnan(problem.lse.at({0, 0, 1})) == (where != 2));
        for (const std::int64_t i : {0, 1})
            CHECK(std::isfinite(problem.out.at({1, i, 0, 2})));
    }
}
