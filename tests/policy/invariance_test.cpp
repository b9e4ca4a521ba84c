// A batch-invariant choice depends on nothing but a request's own lengths and what the requests of
// a call share.
#include <doctest/doctest.h>

#include <algorithm>

#include "kernel_sources/attention/layout.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;
using Wide = std::int64_t;

// The number of parts as the kernels compute it.
Wide parts_of(const AttentionChoice& choice, Wide kv_len, Wide step) {
    const Wide steps = (kv_len + step - 1) / step;
    const Wide steps_a_part =
        std::max(choice.split_keys / step, (steps + choice.split_parts - 1) / choice.split_parts);
    return std::max<Wide>(1, (steps + steps_a_part - 1) / steps_a_part);
}

void check_parts(const AttentionChoice& choice, Wide kv_len) {
    if (choice.split_keys == 0) {
        REQUIRE(choice.splits == 1);
        return;
    }
    const Wide warps = is_mma(choice.spec.kernel) ? kAttentionWarps : 1;
    const Wide step = value_of(choice.spec, "tile_n") * warps;
    REQUIRE(choice.split_keys % step == 0);
    REQUIRE(choice.split_parts >= 1);
    REQUIRE(parts_of(choice, kv_len, step) <= choice.splits);
    REQUIRE(parts_of(choice, 0x7fff0000, step) <= choice.split_parts);
}

TEST_CASE("the choice for a request does not depend on who shares the batch") {
    Random random = Random::fresh();
    INFO(random.text());
    int chosen = 0;
    int divided = 0;
    for (int round = 0; round < 2000; ++round) {
        AttentionProblem alone = random_attention_shape(random);
        alone.batch_invariant = true;
        alone.batch = 1;
        alone.q_len = random.chance(0.5) ? 1 : random_count(random, 300);
        alone.kv_len = random_count(random, 1 << 20);
        DeviceFacts facts = random_facts(random);
        const auto forced = random.chance(0.3) ? std::optional(KernelId::attn_decode_scalar)
                                               : std::optional<KernelId>();
        const auto first = choose_attention(alone, facts, forced);
        if (!first) continue;
        ++chosen;
        check_parts(*first, alone.kv_len);
        if (first->splits > 1) ++divided;
        CAPTURE(text_of(alone));
        CAPTURE(text_of(facts));
        for (int other = 0; other < 20; ++other) {
            AttentionProblem batch = alone;
            batch.batch = random_count(random, 5000);
            batch.kv_len = alone.kv_len + random_count(random, 1 << 20);
            if (batch.packed) batch.q_len = alone.q_len + random_count(random, 5000);
            facts.sm_count = random_count(random, 1000);
            const auto choice = choose_attention(batch, facts, forced);
            if (!choice) continue;  // too large, and refused
            REQUIRE_MESSAGE(choice->spec == first->spec, text_of(batch));
            REQUIRE(choice->split_keys == first->split_keys);
            REQUIRE(choice->split_parts == first->split_parts);
            check_parts(*choice, alone.kv_len);
            check_parts(*choice, batch.kv_len);
        }
    }
    CHECK(chosen > 1000);
    CHECK(divided > 100);
}

TEST_CASE("a batch that is too large for the kernel is refused, not given to another one") {
    AttentionProblem problem;
    problem.format = 2;
    problem.q_heads = problem.kv_heads = 8;
    problem.head_dim = 128;
    problem.q_len = 1;
    problem.kv_len = 1 << 20;
    problem.batch = 1 << 24;
    const DeviceFacts facts = typical_facts({90, 'a'});
    REQUIRE(choose_attention(problem, facts));
    problem.batch_invariant = true;
    CHECK(!choose_attention(problem, facts));
    const auto reasons = rank_attention(problem, facts).candidates;
    CHECK(reasons[0].kernel == KernelId::attn_decode_cluster);
    CHECK(reasons[0].reason == Reason::grid_too_large);
    CHECK(reasons[1].kernel == KernelId::attn_decode_mma);
    CHECK(reasons[1].reason == Reason::grid_too_large);
    CHECK(reasons[2].kernel == KernelId::attn_prefill_mma);
    CHECK(reason_text(reasons[2]).find("split the batch") != std::string::npos);
    problem.batch = 1 << 10;
    CHECK(choose_attention(problem, facts));
}

}  // namespace
}  // namespace jitney::policy
