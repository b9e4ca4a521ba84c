#include <doctest/doctest.h>

#include <utility>

#include "operations/attention/reference.hpp"
#include "tests/reference/naive.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/problems.hpp"

using namespace jitney;
using namespace jitney::tests;

namespace {

// The reference is rounded to the problem's format; the definition's result is exact to fp32.
Tolerance rounding_of(DType dtype) {
    switch (dtype) {
        case DType::bf16:
            return {1e-7, 0x1p-8};
        case DType::fp16:
            return {1e-7, 0x1p-11};
        default:
            return {1e-12, 0x1p-23};
    }
}

void check_problem(const AttentionShape& shape, Random& random, const Layout& layout = {}) {
    INFO(random.text());
    INFO(shape.text());
    AttentionProblem problem(shape, random, layout);
    reference::attention(problem.reference_call());
    const NaiveResult expected = naive_attention(problem);
    JITNEY_CHECK_CLOSE(problem.out, expected.out, rounding_of(shape.dtype));
    JITNEY_CHECK_CLOSE(problem.lse, expected.lse, (Tolerance{1e-6, 0x1p-23}));
    CHECK(problem.out.surroundings_intact());
    CHECK(problem.lse.surroundings_intact());
}

}  // namespace

TEST_CASE("random problems agree with the definition, in any layout") {
    Random random = Random::fresh();
    AttentionLimits limits;
    limits.head_dims = {1, 2, 3, 5, 8, 40, 64, 67};
    limits.dtypes = {DType::bf16, DType::fp16, DType::fp32};
    for (int i = 0; i < 80; ++i) {
        CAPTURE(i);
        check_problem(random_attention_shape(random, limits), random, random_layout(random));
    }
}

TEST_CASE("every rank of mask, with and without the causal rule") {
    Random random = Random::fresh();
    for (const MaskKind mask : {MaskKind::keys, MaskKind::queries, MaskKind::shared_heads,
                                MaskKind::heads, MaskKind::one_batch}) {
        for (const bool causal : {false, true}) {
            AttentionShape shape{2, 37, 130, 6, 2, 16, DType::fp32, mask, causal, {}};
            check_problem(shape, random, random_layout(random));
        }
    }
}

TEST_CASE("every head_dim") {
    Random random = Random::fresh();
    for (const std::int64_t head_dim :
         {1, 2, 3, 4, 7, 32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256, 512}) {
        check_problem({1, 5, 70, 2, 1, head_dim, DType::bf16, MaskKind::none, true, {}}, random);
    }
}

TEST_CASE("every ratio of query heads to KV heads") {
    Random random = Random::fresh();
    for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 16, 71}) {
        check_problem({2, 9, 66, 2 * group, 2, 24, DType::fp16, MaskKind::none, true, {}}, random,
                      kBhld);
    }
}

TEST_CASE("lengths around and far from the size of a block") {
    Random random = Random::fresh();
    const std::pair<std::int64_t, std::int64_t> lengths[] = {
        {1, 1},   {1, 63},  {1, 64},    {1, 65},    {63, 128},   {64, 128}, {65, 127},
        {239, 1}, {799, 3}, {113, 203}, {108, 256}, {384, 256},  {1, 339},  {3, 799},
        {511, 1}, {3, 513}, {2, 1},     {640, 128}, {1023, 1024}};
    for (const auto& [q_len, kv_len] : lengths) {
        for (const bool causal : {false, true}) {
            check_problem({1, q_len, kv_len, 1, 1, 16, DType::fp32, MaskKind::none, causal, {}},
                          random);
        }
    }
}
