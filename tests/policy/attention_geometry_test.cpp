// What must hold of every launch that the policy asks for, by arithmetic of its own.
#include <doctest/doctest.h>

#include "kernel_sources/attention/layout.h"
#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;
using Wide = std::int64_t;

constexpr Wide kMost = std::numeric_limits<std::int32_t>::max();

// Keys that a block takes at a time: in the tensor-core decode each warp has a tile.
Wide keys_a_step(const Spec& spec) {
    const bool by_warps =
        spec.kernel == KernelId::attn_decode_mma || spec.kernel == KernelId::attn_decode_cluster;
    const int warps = by_warps ? kAttentionWarps : 1;
    return value_of(spec, "tile_n") * warps;
}

bool is_wgmma(const AttentionChoice& choice) {
    return choice.spec.kernel == KernelId::attn_prefill_wgmma;
}

// Heads that have tiles of their own: where a tile takes a part of a group, more than KV heads.
Wide heads_of(const AttentionProblem& p, const AttentionChoice& choice) {
    REQUIRE(choice.group >= 1);
    REQUIRE(p.group() % choice.group == 0);
    if (is_wgmma(choice)) {
        REQUIRE(64 % choice.group == 0);
    } else {
        REQUIRE(choice.group == p.group());
    }
    return p.q_heads / choice.group;
}

void check_rows(const AttentionProblem& p, const AttentionChoice& choice) {
    const Wide rows = Wide{p.q_len} * choice.group;
    const Wide tile = value_of(choice.spec, "tile_m");
    if (p.packed) {
        // Room for every way to divide the rows among the requests.
        const Wide requests = std::min(p.batch, p.q_len);
        REQUIRE(choice.row_tiles == rows / tile + requests);
        REQUIRE(choice.work_map);
        REQUIRE(parse_spec(text_of(choice.work_map->spec)) == choice.work_map->spec);
    } else {
        REQUIRE(choice.row_tiles * tile >= rows);
        REQUIRE((choice.row_tiles - 1) * tile < rows);
        REQUIRE_FALSE(choice.work_map);
    }
    REQUIRE(rows + tile <= kMost);
}

void check_splits(const AttentionProblem& p, const AttentionChoice& choice) {
    const Wide splits = choice.splits;
    REQUIRE(splits >= 1);
    if (!is_decode(choice.spec.kernel)) REQUIRE(splits == 1);
    const Wide step = keys_a_step(choice.spec);
    // The kernels look this far past the last key.
    REQUIRE(p.kv_len + 16 * step <= kMost);
    if (p.batch_invariant) return;  // invariance_test.cpp
    REQUIRE(choice.split_keys == 0);
    const Wide key_tiles = (p.kv_len + step - 1) / step;
    REQUIRE((splits == 1 || splits <= key_tiles));
    // As the kernels divide the keys, the last split has some.
    const Wide tiles_a_split = (key_tiles + splits - 1) / splits;
    REQUIRE((splits == 1 || (splits - 1) * tiles_a_split < key_tiles));
}

void check_grid(const AttentionProblem& p, const AttentionChoice& choice,
                const DeviceFacts& facts) {
    const int batch = p.packed ? 1 : p.batch;
    // In floating point, which does not wrap around.
    const Wide heads = heads_of(p, choice);
    REQUIRE(static_cast<double>(batch) * static_cast<double>(heads) * choice.row_tiles *
                choice.splits <=
            static_cast<double>(kMost));
    const Wide tiles = batch * heads * choice.row_tiles * choice.splits;
    const Wide blocks = is_wgmma(choice) ? std::min<Wide>(tiles, facts.sm_count) : tiles;
    REQUIRE(choice.geometry.grid == std::array<unsigned, 3>{static_cast<unsigned>(blocks), 1, 1});
    const auto threads = static_cast<unsigned>(
        is_wgmma(choice) ? 2 * value_of(choice.spec, "tile_m") + 128 : kAttentionThreads);
    REQUIRE(choice.geometry.block == std::array<unsigned, 3>{threads, 1, 1});
    REQUIRE(choice.geometry.cluster ==
            std::array<unsigned, 3>{static_cast<unsigned>(choice.cluster), 1, 1});
    const bool clusters = choice.spec.kernel == KernelId::attn_decode_cluster;
    REQUIRE((choice.cluster == 1 || (clusters && choice.cluster == choice.splits)));
    REQUIRE(choice.cluster <= 8);
}

void check_shared(const AttentionChoice& choice, const DeviceFacts& facts) {
    REQUIRE(choice.geometry.shared_bytes == shared_bytes(choice.spec));
    REQUIRE(choice.geometry.shared_bytes > 0);
    REQUIRE(choice.geometry.shared_bytes <= facts.shared_bytes_per_block);
}

// A bit a key in words of 32 keys, and a bit for 32 of them in a band of rows.
Wide mask_bytes(const AttentionProblem& p, const AttentionChoice& choice) {
    const MaskSizes& mask = p.mask_sizes;
    const bool reads_bits =
        p.mask && (choice.spec.kernel == KernelId::attn_prefill_mma || is_wgmma(choice));
    REQUIRE(choice.mask_bits.has_value() == (reads_bits && mask.keys != 0));
    if (!choice.mask_bits) return 0;
    REQUIRE(parse_spec(text_of(choice.mask_bits->spec)) == choice.mask_bits->spec);
    const Wide heads = Wide{mask.batch} * mask.heads;
    const Wide bands = heads * ((Wide{mask.rows} + kMaskBandRows - 1) / kMaskBandRows);
    const Wide words = bands * std::min(mask.rows, kMaskBandRows) * ((Wide{mask.keys} + 31) / 32);
    const Wide blocks = bands * ((Wide{mask.keys} + kMaskSpanKeys - 1) / kMaskSpanKeys);
    REQUIRE(blocks <= kMost);
    REQUIRE(choice.mask_bits->geometry.grid ==
            std::array<unsigned, 3>{static_cast<unsigned>(blocks), 1, 1});
    REQUIRE(static_cast<Wide>(choice.workspace.mask_words_bytes) == words * 4);
    REQUIRE(static_cast<Wide>(choice.workspace.mask_summary_bytes) == blocks * 4);
    return (words + blocks) * 4;
}

// A tile's partial results: head_dim accumulators, a maximum and a sum for each row and split.
void check_workspace(const AttentionProblem& p, const AttentionChoice& choice) {
    const AttentionWorkspace& workspace = choice.workspace;
    if (is_wgmma(choice)) {
        const Wide heads = (p.packed ? 1 : p.batch) * heads_of(p, choice);
        const Wide tiles = heads * choice.row_tiles;
        const bool counts = tiles > choice.geometry.grid[0] || p.kv_len == 0 || p.paged;
        REQUIRE(workspace.arrived_bytes == (counts ? kWgmmaCounterBytes : 0));
        REQUIRE(static_cast<Wide>(workspace.scratch_bytes()) ==
                (p.packed ? Wide{choice.row_tiles} * 8 : 0) + mask_bytes(p, choice));
        REQUIRE(choice.heads_at_a_time >= 1);
        REQUIRE(choice.heads_at_a_time <= heads);
        return;
    }
    if (choice.splits == choice.cluster) {
        REQUIRE(static_cast<Wide>(workspace.total()) ==
                (p.packed ? Wide{choice.row_tiles} * 8 : 0) + mask_bytes(p, choice));
        return;
    }
    const Wide tiles = Wide{p.packed ? 1 : p.batch} * p.kv_heads * choice.row_tiles;
    const Wide map = p.packed ? Wide{choice.row_tiles} * 8 : 0;
    const Wide rows = tiles * choice.splits * value_of(choice.spec, "tile_m");
    REQUIRE(static_cast<Wide>(workspace.arrived_bytes) == tiles * 4);
    REQUIRE(static_cast<Wide>(workspace.partial_out_bytes) == rows * p.head_dim * 4);
    REQUIRE(static_cast<Wide>(workspace.scratch_bytes()) == rows * (p.head_dim + 2) * 4 + map);
    REQUIRE(workspace.total() == workspace.arrived_bytes + workspace.scratch_bytes());
    // What follows the accumulators keeps their alignment.
    REQUIRE(workspace.partial_out_bytes % 16 == 0);
}

// The constants say what the problem is, and their text is one that parses.
void check_spec(const AttentionProblem& p, const Spec& spec) {
    REQUIRE(parse_spec(text_of(spec)) == spec);
    REQUIRE(value_of(spec, "head_dim") == p.head_dim);
    REQUIRE(value_of(spec, "format") == p.format);
    REQUIRE(value_of(spec, "mask") == (p.mask ? 1 : 0));
    if (p.packed || p.q_len > 1) REQUIRE(value_of(spec, "causal") == (p.causal ? 1 : 0));
}

void check(const AttentionProblem& problem, const AttentionChoice& choice,
           const DeviceFacts& facts) {
    check_spec(problem, choice.spec);
    check_rows(problem, choice);
    check_splits(problem, choice);
    check_grid(problem, choice, facts);
    check_shared(choice, facts);
    check_workspace(problem, choice);
}

TEST_CASE("the geometry of random problems, every kernel forced") {
    Random random = Random::fresh();
    INFO(random.text());
    int checked = 0;
    for (int round = 0; round < 20000; ++round) {
        const AttentionProblem problem = random_attention(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(problem));
        CAPTURE(text_of(facts));
        for (const Candidate& candidate : rank_attention(problem, facts).candidates) {
            const auto choice = choose_attention(problem, facts, candidate.kernel);
            if (!choice) continue;
            check(problem, *choice, facts);
            ++checked;
        }
    }
    CHECK(checked > 20000);
}

TEST_CASE("every head dimension has a kernel on every arch, in every format") {
    for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
        const DeviceFacts facts = typical_facts(parse_arch(name).value());
        for (int head_dim = 1; head_dim <= 512; ++head_dim) {
            for (int format = 0; format <= 2; ++format) {
                for (const int q_len : {1, 3, 17, 1000}) {
                    AttentionProblem problem;
                    problem.format = format;
                    problem.batch = 2;
                    problem.q_len = q_len;
                    problem.kv_len = 1000;
                    problem.q_heads = 6;
                    problem.kv_heads = 2;
                    problem.head_dim = head_dim;
                    CAPTURE(name);
                    CAPTURE(text_of(problem));
                    const auto choice = choose_attention(problem, facts);
                    REQUIRE(choice);
                    check(problem, *choice, facts);
                    // The tensor cores are used wherever they can be.
                    const bool tensor_cores = facts.arch.number >= 80 && format != 0 &&
                                              head_dim % 8 == 0 && head_dim <= 256;
                    const bool mma = is_mma(choice->spec.kernel);
                    REQUIRE(mma == tensor_cores);
                }
            }
        }
    }
}

}  // namespace
}  // namespace jitney::policy
