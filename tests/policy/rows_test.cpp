// The choices of rms_norm and gated_activation: every element of every row has a thread.
#include <doctest/doctest.h>

#include <utility>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/norm/gated_activation.h"
#include "kernel_sources/norm/row_shape.h"
#include "operations/gated_activation/choose.hpp"
#include "operations/rms_norm/choose.hpp"
#include "policy/row_tile.hpp"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

RmsNormProblem llama() {
    RmsNormProblem problem;
    problem.format = kBf16;
    problem.weight = kBf16;
    problem.rows = 2048;
    problem.d = 4096;
    problem.residual = true;
    return problem;
}

RmsNormProblem random_norm(Random& random) {
    RmsNormProblem problem;
    problem.format = static_cast<int>(random.integer(kFp32, kBf16));
    problem.weight = static_cast<int>(random.integer(kFp32, kNoWeight));
    problem.result = static_cast<int>(random.integer(kPlainResult, kRowScaledCodes));
    problem.rows = random_count(random, 1 << 30);
    problem.d = static_cast<int>(random_count(random, 1 << 17));
    problem.residual = random.chance(0.5);
    problem.center = random.chance(0.3);
    problem.bias = problem.weight != kNoWeight && random.chance(0.3);
    problem.one_plus = problem.weight != kNoWeight && random.chance(0.3);
    problem.aligned = random.chance(0.7);
    return problem;
}

GatedActivationProblem random_gate(Random& random) {
    GatedActivationProblem problem;
    problem.format = static_cast<int>(random.integer(kFp32, kBf16));
    problem.activation = static_cast<int>(random.integer(kSilu, kRelu2));
    problem.result = static_cast<int>(random.integer(kPlainResult, kRowScaledCodes));
    problem.rows = random_count(random, 1 << 20);
    problem.d = static_cast<int>(random_count(random, 1 << 17));
    problem.aligned = random.chance(0.7);
    return problem;
}

// What both have in common: the row has room, or is read anew; and rows have blocks.
template <class Problem, class Choice>
void check_rows(const Problem& problem, const Choice& choice, std::int64_t pieces,
                const DeviceFacts& facts) {
    CAPTURE(text_of(choice.spec));
    CAPTURE(problem.d);
    REQUIRE(parse_spec(text_of(choice.spec)) == choice.spec);
    REQUIRE(value_of(choice.spec, "format") == problem.format);
    REQUIRE(value_of(choice.spec, "result") == problem.result);
    const int width = value_of(choice.spec, "width");
    const std::int64_t threads = value_of(choice.spec, "threads");
    const std::int64_t held = value_of(choice.spec, "vectors");
    REQUIRE(problem.d % width == 0);
    if (!problem.aligned) REQUIRE(width == 1);
    if (held != 0) REQUIRE(pieces * held * threads * width >= problem.d);
    const std::int64_t together = rows_a_block(static_cast<int>(threads));
    const std::int64_t blocks = choice.geometry.grid[0];
    REQUIRE(blocks * together >= problem.rows * pieces);
    REQUIRE((blocks - 1) * together < problem.rows * pieces);
    REQUIRE(choice.geometry.block[0] == threads * together);
    REQUIRE(choice.geometry.block[0] <= 1024);
    REQUIRE(choice.geometry.shared_bytes == shared_bytes(choice.spec));
    REQUIRE(choice.geometry.shared_bytes <= facts.shared_bytes_per_block);
}

}  // namespace

TEST_CASE("norms: every element has a thread, and all rows the same kernel") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 3000; ++round) {
        RmsNormProblem problem = random_norm(random);
        const DeviceFacts facts = random_facts(random);
        const auto choice = rank_rms_norm(problem, facts).choice;
        REQUIRE(choice);
        check_rows(problem, *choice, 1, facts);
        REQUIRE(value_of(choice->spec, "weight") == problem.weight);
        REQUIRE(value_of(choice->spec, "residual") == (problem.residual ? 1 : 0));
        REQUIRE(value_of(choice->spec, "center") == (problem.center ? 1 : 0));
        REQUIRE(value_of(choice->spec, "bias") == (problem.bias ? 1 : 0));
        REQUIRE(value_of(choice->spec, "one_plus") == (problem.one_plus ? 1 : 0));
        REQUIRE(choice->geometry.programmatic == has_programmatic_launches(facts));
        problem.rows = 1;
        REQUIRE(rank_rms_norm(problem, facts).choice->spec == choice->spec);
    }
}

TEST_CASE("gates: every element has a thread, and all rows the same kernel") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 3000; ++round) {
        GatedActivationProblem problem = random_gate(random);
        const DeviceFacts facts = random_facts(random);
        const auto choice = rank_gated_activation(problem, facts).choice;
        REQUIRE(choice);
        check_rows(problem, *choice, choice->pieces, facts);
        REQUIRE(value_of(choice->spec, "activation") == problem.activation);
        if (problem.result == kRowScaledCodes) REQUIRE(choice->pieces == 1);
        problem.rows = 1;
        REQUIRE(rank_gated_activation(problem, facts).choice->spec == choice->spec);
    }
}

TEST_CASE("tiles of rows: powers of two in a warp, warps behind it") {
    for (int vectors = 1; vectors < 20000; ++vectors) {
        for (const auto& [wanted, most] : {std::pair{1, 1}, {1, 4}, {2, 4}, {4, 4}, {4, 16}}) {
            const RowTile tile = row_tile(vectors, wanted, most);
            const bool power = tile.threads <= 32 && (tile.threads & (tile.threads - 1)) == 0;
            REQUIRE((power || tile.threads % 32 == 0));
            REQUIRE(tile.threads <= 1024);
            REQUIRE(tile.vectors <= most);
            if (tile.vectors == 0) {
                REQUIRE(vectors > 1024 * most);
            } else {
                REQUIRE(tile.vectors * tile.threads >= vectors);
                // No warp is idle in all of its vectors.
                REQUIRE(tile.vectors * (tile.threads - 32) < vectors);
            }
        }
    }
}

TEST_CASE("what rows can't be") {
    const auto reason = [](const RmsNormProblem& problem, const DeviceFacts& facts = kHopper) {
        return reason_text(rank_rms_norm(problem, facts).candidates.front());
    };
    CHECK(reason(llama()).empty());
    CHECK(reason(llama(), typical_facts({70, 0})) == "needs sm_75 or newer, this is sm_70");
    RmsNormProblem problem = llama();
    problem.format = kFp8E4m3;
    CHECK(reason(problem) == "takes fp32, fp16, bf16, not e4m3");
    problem = llama();
    problem.rows = std::int64_t{1} << 40;
    CHECK(reason(problem) == "needs 1099511627776 blocks, a grid has at most 2147483647");
    CHECK_THROWS(
        parse_spec("rms_norm<format=bf16,weight=bf16,width=8,threads=48,vectors=1>@sm_80"));
}

}  // namespace jitney::policy
