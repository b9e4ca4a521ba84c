// The promises of attention, one by one, on cases that can be worked out by hand.
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

}  // namespace

TEST_CASE("weights of 1/3 and 2/3") {
    Random random(1);
    AttentionShape shape = small(1, 2);
    shape.scale = 1.0;
    AttentionProblem problem(shape, random);
    problem.q.set(0, 1.0);
    problem.k.set(0, 0.0);
    problem.k.set(1, std::log(2.0));
    problem.v.set(0, 3.0);
    problem.v.set(1, 6.0);
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == doctest::Approx(5.0).epsilon(1e-6));
    CHECK(problem.lse.get(0) == doctest::Approx(std::log(3.0)).epsilon(1e-6));
}

TEST_CASE("the scale is 1 / sqrt(head_dim) unless given") {
    Random random(1);
    AttentionShape shape = small(1, 1);
    shape.head_dim = 16;
    AttentionProblem problem(shape, random);
    problem.q.fill([](std::int64_t) { return 1.0; });
    problem.k.fill([](std::int64_t) { return 1.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == 4.0);
    problem.shape.scale = 0.0;
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == 0.0);
}

TEST_CASE("the LSE is the natural logarithm") {
    AttentionProblem problem = counting_problem(small(1, 100));
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == doctest::Approx(std::log(100.0)).epsilon(1e-6));
    CHECK(problem.out.get(0) == doctest::Approx(50.5).epsilon(1e-6));
}

TEST_CASE("the causal rule is aligned at the bottom right") {
    SUBCASE("fewer queries than keys") {
        AttentionShape shape = small(2, 5);
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        reference::attention(problem.reference_call());
        CHECK(problem.out.get(0) == doctest::Approx(2.5));  // keys 0 to 3
        CHECK(problem.out.get(1) == doctest::Approx(3.0));  // keys 0 to 4
    }
    SUBCASE("more queries than keys: the first ones see nothing") {
        AttentionShape shape = small(5, 2);
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        reference::attention(problem.reference_call());
        for (const std::int64_t row : {0, 1, 2}) {
            CHECK(problem.out.get(row) == 0.0);
            CHECK(problem.lse.get(row) == -kInf);
        }
        CHECK(problem.out.get(3) == 1.0);
        CHECK(problem.out.get(4) == doctest::Approx(1.5));
    }
}

TEST_CASE("a row that the mask hides from every key is 0, with LSE -inf") {
    AttentionShape shape = small(3, 70);
    shape.mask = MaskKind::queries;
    AttentionProblem problem = counting_problem(shape);
    problem.mask->fill([](std::int64_t i) { return i / 70 == 1 ? 0.0 : 1.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == doctest::Approx(35.5));
    CHECK(problem.out.get(1) == 0.0);
    CHECK_FALSE(std::signbit(problem.out.get(1)));
    CHECK(problem.lse.get(1) == -kInf);
    CHECK(problem.out.get(2) == doctest::Approx(35.5));
}

TEST_CASE("a mask whose first visible key comes after many hidden blocks") {
    AttentionShape shape = small(1, 300);
    shape.mask = MaskKind::keys;
    AttentionProblem problem = counting_problem(shape);
    problem.mask->fill([](std::int64_t i) { return i == 299 ? 1.0 : 0.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == 300.0);
    CHECK(problem.lse.get(0) == 0.0);
}

TEST_CASE("no key at all: 0 and LSE -inf") {
    for (const bool causal : {false, true}) {
        Random random(1);
        AttentionShape shape = small(3, 0);
        shape.batch = 2;
        shape.head_dim = 4;
        shape.causal = causal;
        AttentionProblem problem(shape, random);
        reference::Attention call = problem.reference_call();
        call.k.data = nullptr;
        call.v.data = nullptr;
        reference::attention(call);
        for (std::int64_t i = 0; i < problem.out.elements(); ++i)
            CHECK(problem.out.get(i) == 0.0);
        for (std::int64_t i = 0; i < problem.lse.elements(); ++i)
            CHECK(problem.lse.get(i) == -kInf);
    }
}

TEST_CASE("no query, no batch or no head: nothing is done") {
    Random random(1);
    AttentionShape no_query = small(0, 7);
    AttentionShape no_batch = small(3, 7);
    no_batch.batch = 0;
    AttentionShape no_head = small(3, 7);
    no_head.q_heads = 0;
    AttentionShape no_kv_head = no_head;
    no_kv_head.kv_heads = 0;
    for (const AttentionShape& shape : {no_query, no_batch, no_head, no_kv_head}) {
        CAPTURE(shape.text());
        AttentionProblem problem(shape, random);
        CHECK_NOTHROW(reference::attention(problem.reference_call()));
        CHECK(problem.out.surroundings_intact());
    }
}

TEST_CASE("the LSE is optional") {
    AttentionProblem problem = counting_problem(small(1, 9));
    reference::Attention call = problem.reference_call();
    call.lse.reset();
    reference::attention(call);
    CHECK(problem.out.get(0) == doctest::Approx(5.0));
    CHECK(std::isnan(problem.lse.get(0)));
}
