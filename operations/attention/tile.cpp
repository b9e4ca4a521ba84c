#include "operations/attention/tile.hpp"

#include <algorithm>

#include "kernel_sources/attention/decode_cluster.h"
#include "kernel_sources/attention/layout.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

constexpr int kDecodeTileM = 16;

struct Tile {
    int m;
    int n;
};

int logits_bytes(const AttentionProblem& p) {
    return row_logits_bytes(p.softcap || p.alibi, p.logits != 0);
}

// The wide tile reads each fragment of K and V once for two blocks of rows, which is what mma.sync
// needs on Hopper; it pays once there are enough tiles for every SM, or, where causality or a mask
// makes them unequal, for each twice. Above head_dim 128 the accumulators of two blocks would not
// fit into the registers. It takes fewer keys where that keeps three blocks on an SM, what sm_120
// has room for, or what pages, masks and slopes need, from spilling. Whether other requests fill
// the SMs does not count where results may not depend on them.
Tile prefill_mma_tile(const AttentionProblem& p, const DeviceFacts& facts) {
    const int dim = mma_dim(p.head_dim);
    const std::int64_t wide_tiles = product(ceil_div(rows_a_head(p), 128), heads(p));
    const bool pays =
        p.batch_invariant
            ? p.packed || rows_a_head(p) > 64
            : wide_tiles >= (p.causal || p.mask ? 2 * facts.sm_count : facts.sm_count * 15 / 16);
    const bool wide = dim <= 128 && p.logits == 0 && pays;
    if (!wide) {
        const int bytes =
            prefill_mma_layout(p.head_dim, 64, 64, p.paged, logits_bytes(p), p.mask).bytes;
        const bool fits = bytes <= facts.shared_bytes_per_block;
        return {64, fits ? 64 : 48};
    }
    const bool newer = facts.arch.number >= 100;
    if (dim > 32 && dim <= 64) {
        // What is the same for every tile costs more beside a mask.
        const bool plain = p.head_dim == 64 && !p.packed && !p.paged && !(p.softcap || p.alibi);
        if (p.mask && plain && facts.arch.number == 90) return {128, 64};
        const bool many_options = p.window && p.softcap && p.alibi;
        return {128, newer || p.paged || many_options ? 32 : 48};
    }
    if (dim > 96 && p.paged && p.mask) return {128, 32};
    if (dim > 112 && p.alibi && p.softcap) return {128, 32};
    return {128, dim > 112 && (facts.arch.number >= 120 || p.paged || p.alibi) ? 48 : 64};
}

// At least this many stages hide the memory's latency behind the products.
constexpr int kMinDecodeStages = 3;

// Of the rings of all warps, one stage.
int decode_stage_bytes(KernelId kernel, const AttentionProblem& p, int tile_n) {
    const int of_warp = kernel == KernelId::attn_decode_cluster
                            ? decode_cluster_ring_bytes(p.head_dim, tile_n, 1)
                            : decode_mma_ring_bytes(p.head_dim, tile_n, 1);
    return of_warp * kAttentionWarps;
}

// 32 keys a warp where its accumulators leave the registers for them.
Tile decode_tile(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts) {
    const bool wide =
        mma_dim(p.head_dim) <= 128 &&
        facts.shared_bytes_per_block / decode_stage_bytes(kernel, p, 32) >= kMinDecodeStages;
    return {kDecodeTileM, wide ? 32 : 16};
}

struct WgmmaTile {
    Tile tile;
    int stages;
    int q_stages;
};

// What was fastest on an H200 at each head_dim (docs/hopper_ladder.md). Three warpgroups multiply
// where the output has few registers, but not where grouped heads make few tiles of short queries.
// Keys, and stages of Q, are as many as shared memory has room for; the output goes out by the copy
// engine where three stages fit. Neither the batch nor the number of SMs counts, so that results do
// not depend on them.
WgmmaTile prefill_wgmma_tile(const AttentionProblem& p) {
    // The warps that gather rows and look through a mask have registers for 64 keys.
    const bool masked_pages = p.mask && p.paged;
    if (p.head_dim <= 64) {
        const bool few_tiles = p.group() > 1 && (p.packed || p.q_len <= 1024);
        // Three leave no registers for warps that gather rows of pages or look through a mask, nor
        // for scores that are edited in place, or by slopes on both sides of packed rows.
        const bool gathers = p.paged && wgmma_box_keys(p.page_size, 128) == 0;
        const bool edits = p.logits != 0 || (p.alibi && (p.softcap || (p.packed && !p.causal)));
        const bool two = few_tiles || gathers || edits || p.mask;
        return {{two ? 128 : 192, masked_pages ? 64 : 128}, 3, 3};
    }
    if (p.head_dim <= 128) return {{128, masked_pages ? 64 : 128}, 2, p.mask ? 2 : 3};
    if (p.head_dim <= 192) return {{128, p.mask ? 64 : 80}, 2, 2};
    return {{128, 64}, 2, 1};
}

// As many query rows a block as leave registers for the accumulators.
Tile prefill_scalar_tile(const AttentionProblem& p) {
    const int keys = p.head_dim > 256 && p.format == kFp32 ? 16 : 32;
    return {p.head_dim <= 128 ? 32 : (p.head_dim <= 256 ? 16 : 8), keys};
}

Tile decode_scalar_tile(const AttentionProblem& p) {
    const Tile tile = prefill_scalar_tile(p);
    const std::int64_t rows = rows_a_head(p);
    return {rows <= 4 ? 4 : (rows <= 8 ? 8 : std::min(tile.m, 16)), tile.n};
}

// Ring stages of a decode on the tensor cores: as many as let two blocks share an SM, or, where
// that would leave too few loads in flight, as many as one block can have.
int decode_stages(KernelId kernel, const AttentionProblem& p, Tile tile, const DeviceFacts& facts) {
    constexpr int most = 8;
    constexpr int reserve = 1024;  // the system's share of each resident block
    const int stage = decode_stage_bytes(kernel, p, tile.n);
    const int paired = (facts.shared_bytes_per_sm / 2 - reserve) / stage;
    if (paired >= kMinDecodeStages) return std::min(paired, most);
    return std::clamp(facts.shared_bytes_per_block / stage, kMinDecodeStages, most);
}

}  // namespace

AttentionTile attention_tile(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts) {
    Tile tile{};
    int stages = 0;
    int q_stages = 0;
    int warps_a_step = 1;
    switch (kernel) {
        case KernelId::attn_prefill_wgmma: {
            const WgmmaTile chosen = prefill_wgmma_tile(p);
            tile = chosen.tile;
            stages = chosen.stages;
            q_stages = chosen.q_stages;
            break;
        }
        case KernelId::attn_prefill_mma:
            tile = prefill_mma_tile(p, facts);
            break;
        case KernelId::attn_decode_mma:
        case KernelId::attn_decode_cluster:
            tile = decode_tile(kernel, p, facts);
            stages = decode_stages(kernel, p, tile, facts);
            warps_a_step = kAttentionWarps;
            break;
        case KernelId::attn_decode_scalar:
            tile = decode_scalar_tile(p);
            break;
        default:
            tile = prefill_scalar_tile(p);
    }
    return {tile.m, tile.n, stages, q_stages, tile.n * warps_a_step};
}

int heads_taken_together(KernelId kernel, const AttentionProblem& p) {
    if (kernel != KernelId::attn_prefill_wgmma) return p.group();
    int together = kWarpgroupRows;
    while (together > 1 && p.group() % together != 0)
        together /= 2;
    return together;
}

// Causal tiles of a head are taken one behind the other, the longest first, those of some heads
// together: as many as have 32 MiB of K and V, or 8 where that was faster (docs/hopper_ladder.md).
int wgmma_heads_at_a_time(const AttentionProblem& p) {
    const bool fewer = p.head_dim == 128 && (p.q_len <= 1024 || p.group() > 1);
    const std::int64_t together = heads_taken_together(KernelId::attn_prefill_wgmma, p);
    const std::int64_t bytes = std::int64_t{fewer ? 8 : 32} << 20;
    const std::int64_t a_head = std::max<std::int64_t>(p.kv_len, 1) * p.head_dim * 4;
    const std::int64_t all = product(p.packed ? 1 : p.batch, p.q_heads / together);
    return static_cast<int>(std::clamp<std::int64_t>(bytes / a_head * (p.group() / together), 1,
                                                     std::clamp<std::int64_t>(all, 1, kMaxTiles)));
}

}  // namespace jitney::policy
