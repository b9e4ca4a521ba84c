// Which specialization is chosen for problems that people know.
#include <doctest/doctest.h>

#include "kernel_sources/common/constants.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

AttentionProblem llama(int batch, int q_len, int kv_len) {
    AttentionProblem problem;
    problem.format = kBf16;
    problem.batch = batch;
    problem.q_len = q_len;
    problem.kv_len = kv_len;
    problem.q_heads = 32;
    problem.kv_heads = 8;
    problem.head_dim = 128;
    problem.causal = true;
    return problem;
}

Spec chosen(const AttentionProblem& problem, const DeviceFacts& facts,
            std::optional<KernelId> forced = {}) {
    const auto choice = choose_attention(problem, facts, forced);
    REQUIRE(choice);
    return choice->spec;
}

TEST_CASE("one query is decode, many are prefill") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    CHECK(chosen(llama(1, 1, 4096), facts).kernel == KernelId::attn_decode_cluster);
    CHECK(chosen(llama(64, 1, 4096), facts).kernel == KernelId::attn_decode_cluster);
    CHECK(chosen(llama(1, 4, 4096), facts).kernel == KernelId::attn_decode_cluster);
    for (const char* name : {"sm_80", "sm_89", "sm_100", "sm_120"}) {
        CHECK(chosen(llama(1, 1, 4096), typical_facts(parse_arch(name).value())).kernel ==
              KernelId::attn_decode_mma);
    }
    for (const int q_len : {512, 4096}) {
        CHECK(chosen(llama(1, q_len, 4096), facts).kernel == KernelId::attn_prefill_wgmma);
        CHECK(chosen(llama(1, q_len, 4096), typical_facts({80, 0})).kernel ==
              KernelId::attn_prefill_mma);
    }
}

TEST_CASE("the tile of the Hopper kernel follows from the shape") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto text = [&](int head_dim, int q_len, int kv_heads, bool window) {
        AttentionProblem problem = llama(2, q_len, 4096);
        problem.head_dim = head_dim;
        problem.kv_heads = kv_heads;
        problem.window = window;
        return text_of(chosen(problem, facts));
    };
    const auto expected = [](const char* constants) {
        return "attn_prefill_wgmma<" + std::string(constants) + ">@sm_90a";
    };
    CHECK(text(64, 4096, 8, false) ==
          expected("head_dim=64,format=bf16,tile=192x128,stages=3,q_stages=3,kv=dense,causal=1"));
    CHECK(text(64, 1024, 32, false) ==
          expected("head_dim=64,format=bf16,tile=192x128,stages=3,q_stages=3,kv=dense,causal=1"));
    CHECK(text(64, 1024, 8, false) ==
          expected("head_dim=64,format=bf16,tile=128x128,stages=3,q_stages=3,kv=dense,causal=1"));
    CHECK(text(64, 4096, 8, true) ==
          expected("head_dim=64,format=bf16,tile=192x128,stages=3,q_stages=3,kv=dense,causal=1,"
                   "window=1"));
    CHECK(text(128, 4096, 8, false) ==
          expected("head_dim=128,format=bf16,tile=128x128,stages=2,q_stages=3,kv=dense,causal=1"));
    CHECK(text(192, 4096, 8, false) ==
          expected("head_dim=192,format=bf16,tile=128x80,stages=2,q_stages=2,kv=dense,causal=1"));
    CHECK(text(256, 4096, 8, false) ==
          expected("head_dim=256,format=bf16,tile=128x64,stages=2,q_stages=1,kv=dense,causal=1"));
}

TEST_CASE("the tile of the Hopper kernel leaves room for pages and masks") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto tile = [&](int head_dim, bool paged, bool mask, int page_size = 1) {
        AttentionProblem problem = llama(2, 4096, 4096);
        problem.head_dim = head_dim;
        problem.paged = paged;
        problem.page_size = page_size;
        problem.mask = mask;
        problem.mask_sizes = {1, 1, 4096, 4096};
        const Spec spec = chosen(problem, facts);
        CHECK(spec.kernel == KernelId::attn_prefill_wgmma);
        return std::array{value_of(spec, "tile_m"), value_of(spec, "tile_n"),
                          value_of(spec, "q_stages")};
    };
    CHECK(tile(64, true, false) == std::array{128, 128, 3});
    CHECK(tile(64, true, false, 24) == std::array{128, 128, 3});
    CHECK(tile(64, true, false, 16) == std::array{192, 128, 3});
    CHECK(tile(64, true, true, 16) == std::array{128, 64, 3});
    CHECK(tile(64, false, true) == std::array{128, 128, 3});
    CHECK(tile(128, true, false) == std::array{128, 128, 3});
    CHECK(tile(128, false, true) == std::array{128, 128, 2});
    CHECK(tile(128, true, true) == std::array{128, 64, 2});
    CHECK(tile(192, true, false) == std::array{128, 80, 2});
    CHECK(tile(192, false, true) == std::array{128, 64, 2});
    CHECK(tile(256, true, true) == std::array{128, 64, 1});
}

TEST_CASE("the tile of the Hopper kernel leaves room for what edits scores in place") {
    AttentionProblem problem = llama(2, 4096, 4096);
    problem.head_dim = 64;
    const auto rows = [&](bool softcap, bool alibi, std::uint64_t logits) {
        problem.softcap = softcap;
        problem.alibi = alibi;
        problem.logits = logits;
        return value_of(chosen(problem, typical_facts({90, 'a'})), "tile_m");
    };
    CHECK(rows(true, false, 0) == 192);
    CHECK(rows(false, true, 0) == 192);
    CHECK(rows(true, true, 0) == 128);
    CHECK(rows(false, false, 1) == 128);
}

TEST_CASE("ragged rows of the Hopper kernel are counted by the heads that share a tile") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    AttentionProblem problem = llama(3, 900, 4096);
    problem.packed = true;
    problem.q_heads = 24;  // six a KV head, in pairs
    problem.kv_heads = 4;
    const auto choice = choose_attention(problem, facts);
    REQUIRE(choice);
    CHECK(choice->group == 2);
    CHECK(choice->row_tiles == 900 * 2 / 128 + 3);
    REQUIRE(choice->work_map);
    CHECK(choice->workspace.map_bytes == 8 * static_cast<std::size_t>(choice->row_tiles));
    // Heads take turns, all of the one packed request.
    CHECK(choice->heads_at_a_time <= 12);
    constexpr int ends[] = {0, 1, 700, 900};
    problem.qo_indptr = {ends};
    CHECK(choose_attention(problem, facts)->row_tiles == 1 + 11 + 4);
}

TEST_CASE("blocks of the Hopper kernel stay, and count tiles where there are more") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    AttentionProblem problem = llama(1, 512, 4096);  // 4 KV heads of 32 tiles
    problem.kv_heads = 4;
    auto choice = choose_attention(problem, facts);
    REQUIRE(choice);
    CHECK(choice->group == 8);
    CHECK(choice->row_tiles == 32);
    CHECK(choice->geometry.grid[0] == 128);
    CHECK(choice->geometry.block[0] == 384);
    CHECK(choice->workspace.total() == 0);
    problem.batch = 2;
    choice = choose_attention(problem, facts);
    CHECK(choice->geometry.grid[0] == static_cast<unsigned>(facts.sm_count));
    CHECK(choice->workspace.arrived_bytes == 32);
    CHECK(choice->workspace.scratch_bytes() == 0);
    // Three heads share no box of 64 rows, and six share it in pairs.
    for (const auto& [group, together] : {std::pair{3, 1}, std::pair{6, 2}, std::pair{80, 16}}) {
        problem.q_heads = 4 * group;
        choice = choose_attention(problem, facts);
        CHECK(choice->group == together);
        CHECK(choice->row_tiles == 512 * together / 128);
    }
    // Without keys zeros are read.
    problem = llama(1, 100, 0);
    CHECK(choose_attention(problem, facts)->workspace.arrived_bytes == 32);
}

TEST_CASE("the arch of the device is that of the specialization") {
    for (const Arch arch : {Arch{80, 0}, Arch{90, 'a'}, Arch{100, 0}, Arch{120, 0}})
        CHECK(chosen(llama(1, 1, 64), typical_facts(arch)).arch() == arch);
}

TEST_CASE("a causal query that is alone needs no masking of its own") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    AttentionProblem problem = llama(1, 1, 4096);
    const Spec causal = chosen(problem, facts);
    CHECK(value_of(causal, "causal") == 0);
    problem.causal = false;
    CHECK(chosen(problem, facts) == causal);
    CHECK(value_of(chosen(llama(1, 2, 4096), facts), "causal") == 1);
}

TEST_CASE("a mask is part of the specialization") {
    AttentionProblem problem = llama(1, 128, 128);
    problem.mask = true;
    CHECK(value_of(chosen(problem, typical_facts({80, 0})), "mask") == 1);
}

TEST_CASE("a mask is made into bits for the tensor-core prefill, and for no other") {
    AttentionProblem problem = llama(4, 4096, 4096);
    problem.mask = true;
    problem.mask_sizes = {4, 1, 4096, 4096};
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto choice = choose_attention(problem, facts);
    REQUIRE(choice);
    CHECK(value_of(choice->spec, "tile_m") == 128);  // as wide as without a mask
    REQUIRE(choice->mask_bits);
    CHECK(text_of(choice->mask_bits->spec) == "attn_mask_bits<threads=256>@sm_90a");
    CHECK(choice->mask_bits->geometry.grid[0] == 4 * 128 * 4);  // bands of 32 rows, 1024 keys
    CHECK(choice->workspace.mask_words_bytes == 4u * 4096 * 4096 / 8);

    CHECK_FALSE(choose_attention(problem, facts, KernelId::attn_prefill_scalar)->mask_bits);
    problem.q_len = 1;
    problem.mask_sizes.rows = 1;
    CHECK_FALSE(choose_attention(problem, facts)->mask_bits);
    // Nothing to read.
    problem = llama(4, 4096, 0);
    problem.mask = true;
    problem.mask_sizes = {4, 1, 4096, 0};
    CHECK_FALSE(choose_attention(problem, facts)->mask_bits);
}

TEST_CASE("long keys are split where the rows do not fill the GPU, and only there") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto splits = [&](int batch, int kv_len) {
        return choose_attention(llama(batch, 1, kv_len), facts)->splits;
    };
    CHECK(2 * splits(1, 131072) * 8 >= facts.sm_count);
    CHECK(splits(1, 1) == 1);
    CHECK(splits(1, 0) == 1);
    CHECK(splits(4096, 4096) == 1);
}

TEST_CASE("few blocks a tile form a cluster, and need no workspace") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto blocks = [&](int batch, int kv_heads, int kv_len) {
        AttentionProblem problem = llama(batch, 1, kv_len);
        problem.kv_heads = kv_heads;
        const auto choice = choose_attention(problem, facts);
        REQUIRE(choice);
        CHECK((choice->workspace.total() == 0) == (choice->splits == choice->cluster));
        return std::pair(choice->splits, choice->cluster);
    };
    // As docs/hopper_decode.md has them measured.
    CHECK(blocks(1, 4, 512) == std::pair(4, 4));
    CHECK(blocks(1, 4, 1024) == std::pair(8, 8));
    CHECK(blocks(1, 4, 2048) == std::pair(8, 8));
    CHECK(blocks(16, 4, 2048) == std::pair(2, 2));
    CHECK(blocks(32, 4, 1024) == std::pair(1, 1));
    CHECK(blocks(16, 8, 8192) == std::pair(1, 1));
    CHECK(blocks(1, 8, 131072) == std::pair(16, 1));
    CHECK(blocks(128, 8, 2048) == std::pair(1, 1));
}

TEST_CASE("empty problems are no trap") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    for (const int kv_len : {0, 1, 4096}) {
        for (const auto& problem :
             {llama(0, 1, kv_len), llama(1, 0, kv_len), llama(0, 0, kv_len)}) {
            const auto choice = choose_attention(problem, facts);
            if (choice) CHECK(choice->geometry.grid[0] == 0);
        }
    }
    CHECK(choose_attention(llama(1, 1, 0), facts)->geometry.grid[0] == 8);
    CHECK(choose_attention(llama(1, 100, 0), facts)->geometry.grid[0] > 0);
}

TEST_CASE("a forced kernel runs whatever it can, and nothing else") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 5000; ++round) {
        const AttentionProblem problem = random_attention(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(problem));
        CAPTURE(text_of(facts));
        for (const Candidate& free : rank_attention(problem, facts).candidates) {
            const auto choice = choose_attention(problem, facts, free.kernel);
            // Asked for by name, it takes the place of no other.
            REQUIRE(choice.has_value() ==
                    (free.accepted() || free.reason == Reason::batch_invariant));
            if (choice) REQUIRE(choice->spec.kernel == free.kernel);
        }
        REQUIRE(!choose_attention(problem, facts, KernelId::rotary_emb));
    }
}

TEST_CASE("the choice is the first candidate that is accepted, every time") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 5000; ++round) {
        const AttentionProblem problem = random_attention(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(problem));
        CAPTURE(text_of(facts));
        const auto choice = choose_attention(problem, facts);
        const auto again = choose_attention(problem, facts);
        REQUIRE(choice.has_value() == again.has_value());
        const KernelId* first = nullptr;
        const auto candidates = rank_attention(problem, facts).candidates;
        for (const Candidate& candidate : candidates) {
            if (candidate.accepted() && first == nullptr) first = &candidate.kernel;
        }
        REQUIRE(choice.has_value() == (first != nullptr));
        // The same answers, up to the accepted one, or all where there is none.
        const auto asked = rank_until_accepted(problem, facts).candidates;
        REQUIRE(asked.size() <= candidates.size());
        for (std::size_t i = 0; i < asked.size(); ++i) {
            REQUIRE(asked[i].kernel == candidates[i].kernel);
            REQUIRE(asked[i].reason == candidates[i].reason);
            REQUIRE(asked[i].accepted() == (first != nullptr && i + 1 == asked.size()));
        }
        REQUIRE((choice || asked.size() == candidates.size()));
        if (!choice) continue;
        REQUIRE(choice->spec.kernel == *first);
        REQUIRE(choice->spec == again->spec);
        REQUIRE(choice->splits == again->splits);
        REQUIRE(choice->geometry.grid == again->geometry.grid);
    }
}

}  // namespace
}  // namespace jitney::policy
