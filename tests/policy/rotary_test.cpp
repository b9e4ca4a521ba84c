#include "operations/rotary/choose.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/rotary/params.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

RotaryProblem llama() {
    RotaryProblem problem;
    problem.format = kBf16;
    problem.style = kHalfSplit;
    problem.tokens = 4096;
    problem.heads = 40;
    problem.head_dim = 128;
    problem.rotary_dim = 128;
    return problem;
}

// The accesses of the kernel to one head, as it derives them from the constants: each element is
// written once, and each access begins at a multiple of its size, or of 16 bytes.
void check_accesses(const RotaryProblem& p, const RotaryChoice& choice) {
    const int bytes = p.format == kFp32 ? 4 : 2;
    std::vector<int> writes(static_cast<std::size_t>(p.head_dim));
    const auto access = [&](int first, int count) {
        REQUIRE(first * bytes % std::min(16, count * bytes) == 0);
        for (int i = first; i < first + count; ++i)
            ++writes.at(static_cast<std::size_t>(i));
    };
    const int items = choice.items;
    const int rotated = p.rotary_dim / 2 / choice.pairs;
    for (int item = 0; item < items; ++item) {
        const int pair = item * choice.pairs;
        if (item >= rotated) {
            const int width = rotary_copy_width(choice.pairs);
            access(p.rotary_dim + (item - rotated) * width, width);
        } else if (p.style == kInterleaved) {
            access(2 * pair, 2 * choice.pairs);
        } else {
            access(pair, choice.pairs);
            access(p.rotary_dim / 2 + pair, choice.pairs);
        }
    }
    for (int i = 0; i < p.head_dim; ++i) {
        const bool written = i < p.rotary_dim || !p.in_place;
        REQUIRE(writes[static_cast<std::size_t>(i)] == (written ? 1 : 0));
    }
}

TEST_CASE("random problems: every element once, every token once") {
    Random random = Random::fresh();
    INFO(random.text());
    int accepted = 0;
    for (int round = 0; round < 5000; ++round) {
        const RotaryProblem problem = random_rotary(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(problem));
        if (!rank_rotary(problem, facts).choice.has_value()) continue;
        ++accepted;
        const RotaryChoice choice = rank_rotary(problem, facts).choice.value();
        REQUIRE(parse_spec(text_of(choice.spec)) == choice.spec);
        REQUIRE(value_of(choice.spec, "pairs") == choice.pairs);
        REQUIRE(value_of(choice.spec, "format") == problem.format);
        REQUIRE(value_of(choice.spec, "style") == problem.style);
        if (!problem.aligned) REQUIRE(choice.pairs == 1);
        check_accesses(problem, choice);

        const std::int64_t blocks = choice.geometry.grid[0];
        REQUIRE(blocks <= kMaxGrid);
        REQUIRE(blocks * choice.tokens_a_block >= problem.tokens);
        REQUIRE((blocks - 1) * choice.tokens_a_block < problem.tokens);
        REQUIRE(choice.threads_a_token == choice.items * choice.heads_at_once);
        REQUIRE(choice.heads_at_once >= 1);
        REQUIRE(choice.heads_at_once <= problem.heads);
        // A token's threads are a block's, or have the block alone.
        REQUIRE((choice.tokens_a_block == 1 ||
                 choice.tokens_a_block * choice.threads_a_token <= kRotaryThreads));
        REQUIRE(choice.geometry.block == std::array<unsigned, 3>{kRotaryThreads, 1, 1});
        REQUIRE(choice.geometry.grid[1] * choice.geometry.grid[2] == 1);
        REQUIRE(choice.geometry.shared_bytes == 0);
    }
    CHECK(accepted > 2500);
}

TEST_CASE("whole vectors where they fit") {
    const auto pairs = [](int format, int style, int rotary_dim, bool in_place = true) {
        RotaryProblem problem = llama();
        problem.format = format;
        problem.style = style;
        problem.rotary_dim = rotary_dim;
        problem.in_place = in_place;
        return rank_rotary(problem, kHopper).choice.value().pairs;
    };
    CHECK(pairs(kBf16, kHalfSplit, 128) == 8);
    CHECK(pairs(kFp16, kInterleaved, 128) == 4);
    CHECK(pairs(kFp32, kHalfSplit, 128) == 4);
    CHECK(pairs(kFp32, kInterleaved, 128) == 2);
    CHECK(pairs(kBf16, kHalfSplit, 20) == 1);
    CHECK(pairs(kBf16, kHalfSplit, 64, false) == 8);
}

TEST_CASE("a thread takes several heads where there are enough for all SMs") {
    RotaryProblem problem = llama();
    problem.tokens = 128;
    RotaryChoice few = rank_rotary(problem, kHopper).choice.value();
    CHECK(few.heads_at_once == 40);
    CHECK(few.tokens_a_block == 1);
    CHECK(few.geometry.programmatic);
    CHECK_FALSE(rank_rotary(problem, typical_facts({89, 0})).choice->geometry.programmatic);
    problem.tokens = 4096;
    const RotaryChoice many = rank_rotary(problem, kHopper).choice.value();
    CHECK(many.heads_at_once == 10);
    CHECK(many.tokens_a_block == 3);
    CHECK_FALSE(many.geometry.programmatic);
    problem.style = kInterleaved;
    CHECK(rank_rotary(problem, kHopper).choice->heads_at_once == 5);
    problem.heads = 1;
    CHECK(rank_rotary(problem, kHopper).choice->heads_at_once == 1);
}

TEST_CASE("reasons") {
    const auto reason = [](const RotaryProblem& problem, const DeviceFacts& facts = kHopper) {
        return reason_text(rank_rotary(problem, facts).candidates[0]);
    };
    CHECK(reason(llama()).empty());
    CHECK(reason(llama(), typical_facts({70, 0})) == "needs sm_75 or newer, this is sm_70");
    RotaryProblem problem = llama();
    problem.format = kFp8E5m2;
    CHECK(reason(problem) == "takes fp32, fp16, bf16, not e5m2");
    problem = llama();
    problem.heads = 1 << 24;
    CHECK(reason(problem) == "heads times head_dim is 2147483648, above 2147418112");
    problem = llama();
    problem.tokens = std::int64_t{1} << 40;
    CHECK(reason(problem) == "needs 366503875926 blocks, a grid has at most 2147483647");
    problem.tokens = std::numeric_limits<std::int64_t>::max();
    CHECK(reason(problem) == "needs 3074457345618258603 blocks, a grid has at most 2147483647");
}

}  // namespace
}  // namespace jitney::policy
