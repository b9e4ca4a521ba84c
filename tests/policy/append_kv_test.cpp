#include "operations/append_kv/choose.hpp"

#include <doctest/doctest.h>

#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/common/constants.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

AppendKvProblem llama() {
    AppendKvProblem problem;
    problem.format = kBf16;
    problem.tokens = 4096;
    problem.batch = 8;
    problem.kv_heads = 8;
    problem.head_dim = 128;
    problem.packed = true;
    problem.paged = true;
    problem.rotary = AppendRotary::half_split;
    problem.rotary_dim = 128;
    problem.q_heads = 32;
    return problem;
}

AppendKvProblem random_problem(Random& random) {
    AppendKvProblem problem;
    problem.format = static_cast<int>(random.integer(kFp32, kBf16));
    problem.tokens = random_count(random, 1 << 30);
    problem.batch = random_count(random, 1000);
    problem.kv_heads = random_count(random, 64);
    problem.head_dim = static_cast<int>(random.integer(1, 64) * (random.chance(0.7) ? 8 : 1));
    problem.packed = random.chance(0.5);
    problem.paged = random.chance(0.5);
    problem.aligned = random.chance(0.8);
    problem.rotary = static_cast<AppendRotary>(random.integer(0, 2));
    if (problem.rotary == AppendRotary::none || problem.head_dim < 2) {
        problem.rotary = AppendRotary::none;
        return problem;
    }
    problem.rotary_dim = static_cast<int>(2 * random.integer(1, problem.head_dim / 2));
    problem.q_heads = random.chance(0.5) ? random_count(random, 128) : 0;
    problem.q_in_place = random.chance(0.5);
    return problem;
}

// How many elements of a head the pieces of work are, and that they begin where they may.
int elements_of(const AppendKvProblem& p, int pairs, int items, bool rotated) {
    const int bytes = p.format == kFp32 ? 4 : 2;
    const int copy = append_copy_width(pairs, bytes);
    if (!rotated) {
        REQUIRE((pairs == 1 || copy * bytes == 16));
        return items * copy;
    }
    const int turned = p.rotary_dim / 2 / pairs;
    REQUIRE(turned * pairs * 2 == p.rotary_dim);
    return p.rotary_dim + (items - turned) * rotary_copy_width(pairs);
}

TEST_CASE("random problems: every element once, every token once") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 5000; ++round) {
        const AppendKvProblem problem = random_problem(random);
        const DeviceFacts facts = random_facts(random);
        REQUIRE(rank_append_kv(problem, facts).choice.has_value());
        const AppendKvChoice choice = rank_append_kv(problem, facts).choice.value();
        CAPTURE(text_of(choice.spec));
        REQUIRE(parse_spec(text_of(choice.spec)) == choice.spec);
        const int pairs = value_of(choice.spec, "pairs");
        if (!problem.aligned) REQUIRE(pairs == 1);
        const bool rotated = problem.rotary != AppendRotary::none;
        REQUIRE(elements_of(problem, pairs, choice.k_items, rotated) == problem.head_dim);
        REQUIRE(elements_of(problem, pairs, choice.v_items, false) == problem.head_dim);
        if (problem.q_heads != 0) {
            REQUIRE(elements_of(problem, pairs, choice.q_items, true) ==
                    (problem.q_in_place ? problem.rotary_dim : problem.head_dim));
        }
        const std::int64_t blocks = choice.geometry.grid[0];
        REQUIRE(blocks * choice.tokens_a_block >= problem.tokens);
        REQUIRE((blocks - 1) * choice.tokens_a_block < problem.tokens);
        REQUIRE(choice.tokens_a_block <= kAppendThreads);
        REQUIRE(choice.geometry.shared_bytes == append_shared_bytes(choice.tokens_a_block));
    }
}

TEST_CASE("the texts of appends") {
    AppendKvProblem problem = llama();
    const auto text = [&] { return text_of(rank_append_kv(problem, kHopper).choice.value().spec); };
    CHECK(text() ==
          "append_kv<format=bf16,pairs=8,queries=packed,kv=paged,rotary=half_split>@sm_90a");
    problem.rotary = AppendRotary::none;
    problem.packed = problem.paged = false;
    problem.rotary_dim = problem.q_heads = 0;
    CHECK(text() == "append_kv<format=bf16,pairs=4,kv=dense>@sm_90a");
    problem.head_dim = 20;
    CHECK(text() == "append_kv<format=bf16,pairs=1,kv=dense>@sm_90a");
}

TEST_CASE("reasons of appends") {
    const auto reason = [](const AppendKvProblem& problem, const DeviceFacts& facts = kHopper) {
        return reason_text(rank_append_kv(problem, facts).candidates[0]);
    };
    CHECK(reason(llama()).empty());
    CHECK(reason(llama(), typical_facts({70, 0})) == "needs sm_75 or newer, this is sm_70");
    AppendKvProblem problem = llama();
    problem.format = kFp8E4m3;
    CHECK(reason(problem) == "takes fp32, fp16, bf16, not e4m3");
    problem = llama();
    problem.tokens = std::int64_t{1} << 40;
    CHECK(reason(problem) == "needs 1099511627776 blocks, a grid has at most 2147483647");
    problem = llama();
    problem.q_heads = 1 << 24;
    CHECK(reason(problem) == "heads times head_dim is 2147485696, above 2147418112");
}

}  // namespace
}  // namespace jitney::policy
