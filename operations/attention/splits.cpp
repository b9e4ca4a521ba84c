#include "operations/attention/splits.hpp"

#include <algorithm>

#include "kernel_sources/attention/decode_cluster.h"

namespace jitney::policy {
namespace {

// A model of the time that a decode takes, in hundredths of a microsecond on an H200; only ratios
// matter. A block needs at least kStep for each step of keys, or kPagedStep where it has to ask for
// their pages, whatever else runs; the memory needs
// kBytes for 64 KiB on all SMs' account, so that many blocks slow each other down; and each part
// that is merged costs the block that merges.
constexpr std::int64_t kStep = 100;
constexpr std::int64_t kPagedStep = 115;
constexpr std::int64_t kBytes = 200;
constexpr std::int64_t kStart = 200;
constexpr std::int64_t kMerge = 50;
constexpr std::int64_t kPart = 10;
// What it costs that the blocks of a cluster merge (docs/hopper_decode.md).
constexpr std::int64_t kClusterMerge = 30;

struct Model {
    std::int64_t tiles;
    std::int64_t steps;       // of keys, over all splits
    std::int64_t step_bytes;  // of K and V
    std::int64_t sm_count;
    std::int64_t slots;  // blocks that run at a time
    std::int64_t step_time;

    std::int64_t wave(std::int64_t blocks, std::int64_t block_steps) const {
        const std::int64_t memory = blocks * block_steps * kBytes * step_bytes / 65536 / sm_count;
        return kStart + std::max(block_steps * step_time, memory);
    }

    std::int64_t time(const Splits& splits) const {
        const std::int64_t block_steps = ceil_div(steps, splits.blocks);
        const std::int64_t blocks = tiles * splits.blocks;
        std::int64_t total = blocks / slots * wave(slots, block_steps);
        if (blocks % slots != 0) total += wave(blocks % slots, block_steps);
        if (splits.blocks == 1) return total;
        return total + (splits.cluster > 1 ? kClusterMerge : kMerge + kPart * splits.blocks);
    }

    // As few splits as have as many steps as `wanted` would have: none is left without keys.
    int splits_of(std::int64_t wanted) const {
        return static_cast<int>(ceil_div(steps, ceil_div(steps, wanted)));
    }
};

int blocks_an_sm(const AttentionProblem& problem, const AttentionTile& tile,
                 const DeviceFacts& facts) {
    constexpr int reserve = 1024;  // the system's share of each resident block
    const int by_registers = problem.head_dim <= 128 ? 3 : 2;
    return std::clamp(facts.shared_bytes_per_sm / (tile.shared_bytes + reserve), 1, by_registers);
}

}  // namespace

Splits decode_splits(KernelId kernel, const AttentionProblem& problem, const AttentionTile& tile,
                     std::int64_t tiles, const DeviceFacts& facts) {
    const std::int64_t steps = ceil_div(problem.kv_len, tile.keys_a_step);
    // Nothing to divide, or more tiles than twice the blocks wanted below.
    if (steps <= 1 || tiles == 0 || tiles > 2 * facts.sm_count) return {};
    const std::int64_t bytes = problem.format == 0 ? 4 : 2;
    const Model model = {
        tiles,
        steps,
        2 * bytes * tile.keys_a_step * problem.head_dim,
        facts.sm_count,
        static_cast<std::int64_t>(facts.sm_count) * blocks_an_sm(problem, tile, facts),
        problem.paged ? kPagedStep : kStep};
    Splits best;
    std::int64_t best_time = model.time(best);
    const auto consider = [&](const Splits& splits) {
        const std::int64_t time = model.time(splits);
        if (time < best_time) {
            best = splits;
            best_time = time;
        }
    };
    if (kernel == KernelId::attn_decode_cluster) {
        for (int wanted = 2; wanted <= kMostClusterBlocks && wanted <= steps; ++wanted) {
            const int splits = model.splits_of(wanted);
            consider({splits, splits});
        }
    }
    // Half a block an SM, one, two, and the multiples of it that fill whole waves.
    for (const std::int64_t blocks : {model.sm_count / 2, model.sm_count, 2 * model.sm_count,
                                      3 * model.sm_count, 4 * model.sm_count}) {
        const std::int64_t wanted = std::min(blocks / tiles, steps);
        if (wanted > best.blocks) consider({model.splits_of(wanted), 1});
    }
    return best;
}

FixedParts fixed_parts(const AttentionProblem& problem, const AttentionTile& tile) {
    // Long enough that merging costs little, and not longer, so that a short request is divided
    // too. A lone long request makes two blocks an SM of a large GPU, however many heads it has.
    constexpr int part_steps = 4;
    constexpr std::int64_t blocks_a_request = 256;
    const std::int64_t tiles =
        product(problem.kv_heads, ceil_div(rows_a_head(problem), std::max(tile.m, 1)));
    FixedParts parts;
    parts.keys = part_steps * tile.keys_a_step;
    parts.most = static_cast<int>(
        std::clamp<std::int64_t>(blocks_a_request / std::max<std::int64_t>(tiles, 1), 4, 64));
    parts.blocks = static_cast<int>(
        std::clamp<std::int64_t>(ceil_div(problem.kv_len, parts.keys), 1, parts.most));
    return parts;
}

}  // namespace jitney::policy
