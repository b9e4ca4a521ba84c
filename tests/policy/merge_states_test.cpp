#include "operations/merge_states/choose.hpp"

#include <doctest/doctest.h>

#include "kernel_sources/attention/merge_states.h"
#include "kernel_sources/common/constants.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

MergeStatesProblem llama() {
    MergeStatesProblem problem;
    problem.format = kBf16;
    problem.rows = 32 * 4096;
    problem.head_dim = 128;
    return problem;
}

TEST_CASE("every row has a warp, and no block is without one") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 3000; ++round) {
        MergeStatesProblem problem;
        problem.format = static_cast<int>(random.integer(kFp32, kBf16));
        problem.rows = random_count(random, 1 << 30);
        problem.head_dim = static_cast<int>(random.integer(1, 512));
        problem.aligned = random.chance(0.7);
        const DeviceFacts facts = random_facts(random);
        REQUIRE(rank_merge_states(problem, facts).choice.has_value());
        const MergeStatesChoice choice = rank_merge_states(problem, facts).choice.value();
        REQUIRE(parse_spec(text_of(choice.spec)) == choice.spec);
        REQUIRE(value_of(choice.spec, "head_dim") == problem.head_dim);
        REQUIRE(value_of(choice.spec, "format") == problem.format);
        const int width = value_of(choice.spec, "width");
        REQUIRE(problem.head_dim % width == 0);
        if (!problem.aligned) REQUIRE(width == 1);
        const std::int64_t blocks = choice.geometry.grid[0];
        REQUIRE(blocks * kMergeRows >= problem.rows);
        REQUIRE((blocks - 1) * kMergeRows < problem.rows);
        REQUIRE(choice.geometry.block == std::array<unsigned, 3>{kMergeThreads, 1, 1});
        REQUIRE(choice.geometry.shared_bytes == 0);
    }
}

TEST_CASE("wide accesses where they fit") {
    MergeStatesProblem problem = llama();
    CHECK(text_of(rank_merge_states(problem, kHopper).choice.value().spec) ==
          "attn_merge_states<head_dim=128,format=bf16,width=4>@sm_90a");
    problem.head_dim = 64;
    CHECK(value_of(rank_merge_states(problem, kHopper).choice.value().spec, "width") == 2);
    problem.head_dim = 129;
    CHECK(value_of(rank_merge_states(problem, kHopper).choice.value().spec, "width") == 1);
}

TEST_CASE("reasons") {
    const auto reason = [](const MergeStatesProblem& problem, const DeviceFacts& facts = kHopper) {
        return reason_text(rank_merge_states(problem, facts).candidates[0]);
    };
    CHECK(reason(llama()).empty());
    CHECK(reason(llama(), typical_facts({70, 0})) == "needs sm_75 or newer, this is sm_70");
    MergeStatesProblem problem = llama();
    problem.format = kFp8E4m3;
    CHECK(reason(problem) == "takes fp32, fp16, bf16, not e4m3");
    problem = llama();
    problem.head_dim = 513;
    CHECK(reason(problem) == "head_dim 513 is above 512");
    problem = llama();
    problem.rows = std::int64_t{1} << 40;
    CHECK(reason(problem) == "needs 274877906944 blocks, a grid has at most 2147483647");
}

}  // namespace
}  // namespace jitney::policy
