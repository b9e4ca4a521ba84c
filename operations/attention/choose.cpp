#include "operations/attention/choose.hpp"

#include <algorithm>

#include "kernel_sources/attention/layout.h"
#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "kernel_sources/attention/work_map.h"
#include "kernel_sources/common/constants.h"
#include "operations/attention/splits.hpp"
#include "operations/attention/tile.hpp"

namespace jitney::policy {
namespace {

// The kernels count packed rows and keys in 32 bits, and look a few tiles past the last.
constexpr std::int64_t kMaxRows = 0x7fff0000;
constexpr std::int64_t kMaxKeys = 0x7fff0000;

Spec make_spec(KernelId kernel, const AttentionProblem& p, const AttentionTile& tile,
               const DeviceFacts& facts) {
    Spec spec = spec_of(kernel, facts.arch,
                        {{"head_dim", p.head_dim},
                         {"format", p.format},
                         {"tile_m", tile.m},
                         {"tile_n", tile.n},
                         {"stages", tile.stages},
                         {"q_stages", tile.q_stages},
                         {"queries", p.packed ? kPackedQueries : kDenseQueries},
                         {"kv", p.paged ? kPagedKv : kDenseKv},
                         // The only query of a request sees all keys, causal or not: one
                         // specialization serves both.
                         {"causal", p.causal && (p.packed || p.q_len > 1)},
                         {"mask", p.mask},
                         {"window", p.window},
                         {"softcap", p.softcap},
                         {"alibi", p.alibi},
                         {"sinks", p.sinks},
                         {"append", p.append}});
    set_logits_digest(spec, p.logits);
    return spec;
}

// Blocks of a cluster need none.
AttentionWorkspace workspace_of(const AttentionProblem& p, int tile_m, std::int64_t tiles,
                                const Splits& splits) {
    if (splits.blocks == splits.cluster) return {};
    const auto rows = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(splits.blocks) *
                      static_cast<std::size_t>(tile_m);
    return {static_cast<std::size_t>(tiles) * 4, rows * static_cast<std::size_t>(p.head_dim) * 4,
            rows * 8, 0};
}

// As many as there are where the host knows the lengths. Else room for every way to divide the
// queries: each request may end in a tile that is not full.
std::int64_t packed_tiles(const AttentionProblem& p, int heads_together, int tile_m) {
    if (p.qo_indptr.empty()) {
        return product(p.q_len, heads_together) / tile_m + std::min<std::int64_t>(p.batch, p.q_len);
    }
    std::int64_t tiles = 0;
    const std::span<const int> ends = p.qo_indptr.ends;
    for (std::size_t i = 1; i < ends.size(); ++i) {
        const std::int64_t queries = ends[i] - ends[i - 1];
        tiles += ceil_div(queries * heads_together, tile_m);
    }
    return tiles;
}

// Tiles of rows of the query heads that a tile takes together, and how many such heads there are.
struct RowTiles {
    std::int64_t each;
    std::int64_t heads;

    std::int64_t all() const { return product(each, heads); }
};

RowTiles row_tiles_of(KernelId kernel, const AttentionProblem& p, int tile_m) {
    const int together = heads_taken_together(kernel, p);
    return {
        p.packed ? packed_tiles(p, together, tile_m) : ceil_div(product(p.q_len, together), tile_m),
        product(heads(p), p.group() / std::max(together, 1))};
}

// Blocks of attn_prefill_wgmma stay and take tile after tile by a counter, which stands at the
// beginning of the counters. Behind it are zeros, which are read as the only key where there is
// none, since a tensor map has one at least.
void set_staying_blocks(const AttentionProblem& p, std::int64_t tiles, const AttentionTile& tile,
                        const DeviceFacts& facts, AttentionChoice& choice) {
    const std::int64_t blocks = std::min<std::int64_t>(tiles, facts.sm_count);
    choice.heads_at_a_time = wgmma_heads_at_a_time(p);
    if (tiles > blocks || p.kv_len == 0 || p.paged)
        choice.workspace.arrived_bytes = kWgmmaCounterBytes;
    choice.geometry.grid[0] = static_cast<unsigned>(blocks);
    choice.geometry.block[0] = static_cast<unsigned>(wgmma_threads(tile.m));
}

HelperChoice helper_choice(KernelId kernel, int threads, const DeviceFacts& facts) {
    HelperChoice choice;
    choice.spec = spec_of(kernel, facts.arch, {{"threads", threads}});
    choice.geometry.block[0] = static_cast<unsigned>(threads);
    choice.geometry.shared_bytes = shared_bytes(choice.spec);
    return choice;
}

// The tensor-core prefill reads a mask as bits, which are made first, once for all heads and tiles
// that share them. The others read few rows, or the bytes as they come.
bool reads_mask_bits(KernelId kernel, const AttentionProblem& p) {
    return p.mask &&
           (kernel == KernelId::attn_prefill_mma || kernel == KernelId::attn_prefill_wgmma);
}

// Bands of all heads and requests together.
std::int64_t all_bands(const MaskSizes& mask) {
    return product(product(mask.batch, mask.heads), mask_bands(mask.rows));
}

std::int64_t mask_blocks(const MaskSizes& mask) {
    return product(all_bands(mask), mask_spans(mask.keys));
}

// A mask without keys or rows is not read.
void add_mask_bits(AttentionChoice& choice, const MaskSizes& mask, const DeviceFacts& facts) {
    const std::int64_t blocks = mask_blocks(mask);
    if (blocks == 0) return;
    choice.mask_bits = helper_choice(KernelId::attn_mask_bits, kMaskBitsThreads, facts);
    choice.mask_bits->geometry.grid[0] = static_cast<unsigned>(blocks);
    choice.workspace.mask_words_bytes = 4 * static_cast<std::size_t>(all_bands(mask)) *
                                        static_cast<std::size_t>(mask_groups(mask.keys)) *
                                        static_cast<std::size_t>(mask_band_stride(mask.rows));
    choice.workspace.mask_summary_bytes = 4 * static_cast<std::size_t>(blocks);
}

void divide_keys(const AttentionProblem& p, const AttentionTile& tile, std::int64_t tiles,
                 const DeviceFacts& facts, AttentionChoice& choice) {
    if (!p.batch_invariant) {
        // Of the tiles that packed requests have room for, one a request is sure to be filled.
        const std::int64_t filled = p.packed
                                        ? std::max(product(p.kv_heads, std::min(p.batch, p.q_len)),
                                                   product(p.kv_heads, rows_a_head(p) / tile.m))
                                        : tiles;
        const Splits splits = decode_splits(choice.spec.kernel, p, tile, filled, facts);
        choice.splits = splits.blocks;
        choice.cluster = splits.cluster;
        return;
    }
    const FixedParts parts = fixed_parts(p, tile);
    choice.splits = parts.blocks;
    choice.split_keys = parts.keys;
    choice.split_parts = parts.most;
}

// Receives what an accepted kernel runs: its specialization with its tile.
struct Fitting {
    AttentionTile tile;
    Spec spec;
};

Candidate judge(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts,
                std::optional<KernelId> forced, Fitting& fitting) {
    const auto reject = [kernel](Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
        return Candidate{kernel, reason, a, b};
    };
    if (forced && *forced != kernel) return reject(Reason::not_forced);
    const Candidate of_arch = judge_arch_and_format(kernel, facts.arch, kFp16);
    if (!of_arch.accepted()) return of_arch;
    if (!takes_format(info(KernelId::attn_prefill_scalar), p.format)) {
        return reject(Reason::format_unknown, p.format);
    }
    if (is_mma(kernel) && p.format == kFp32) return reject(Reason::format_needs_scalar);
    const Candidate of_size = judge_head_dim(kernel, p.head_dim);
    if (!of_size.accepted()) return of_size;
    if (is_mma(kernel) && !p.aligned) return reject(Reason::not_aligned);
    if (p.packed && is_decode(kernel) && (kernel != KernelId::attn_decode_cluster || p.append)) {
        return reject(Reason::packed_queries);
    }
    const bool wgmma = kernel == KernelId::attn_prefill_wgmma;
    if (wgmma && !p.mapped) return reject(Reason::not_mapped);
    if (!is_decode(kernel) && p.append) return reject(Reason::append_needs_decode);
    if (is_decode(kernel) && !p.packed && p.q_len > kMaxDecodeQueries) {
        return reject(Reason::too_many_queries, p.q_len, kMaxDecodeQueries);
    }
    AttentionTile& tile = fitting.tile;
    tile = attention_tile(kernel, p, facts);
    fitting.spec = make_spec(kernel, p, tile, facts);
    tile.shared_bytes = shared_bytes(fitting.spec);
    if (tile.shared_bytes > facts.shared_bytes_per_block) {
        return reject(Reason::shared_memory, tile.shared_bytes, facts.shared_bytes_per_block);
    }
    if (rows_a_head(p) > kMaxRows) return reject(Reason::too_many_rows, rows_a_head(p), kMaxRows);
    if (p.kv_len > kMaxKeys) return reject(Reason::too_many_keys, p.kv_len, kMaxKeys);
    if (const int most = wgmma_most_masked_keys(tile.n);
        wgmma && p.mask && p.mask_sizes.keys > most) {
        return reject(Reason::mask_too_wide, p.mask_sizes.keys, most);
    }
    const int splits = p.batch_invariant && is_decode(kernel) ? fixed_parts(p, tile).blocks : 1;
    const RowTiles tiles = row_tiles_of(kernel, p, tile.m);
    if (wgmma && tiles.all() > kMaxTiles) {
        return reject(Reason::too_many_tiles, tiles.each, tiles.heads);
    }
    const std::int64_t blocks = product(tiles.all(), splits);
    if (blocks > kMaxGrid) return reject(Reason::grid_too_large, blocks, kMaxGrid);
    if (reads_mask_bits(kernel, p) && mask_blocks(p.mask_sizes) > kMaxGrid) {
        return reject(Reason::grid_too_large, mask_blocks(p.mask_sizes), kMaxGrid);
    }
    return Candidate{kernel};
}

// A kernel that other batches of the same requests run and that this one is too large for: another
// one would not be the same to each request.
bool ends_the_choice(const AttentionProblem& p, const Candidate& candidate) {
    return p.batch_invariant && (candidate.reason == Reason::grid_too_large ||
                                 candidate.reason == Reason::too_many_tiles);
}

// Few enough rows that streaming K and V once a 16-row tile, divided over the whole GPU, beats
// fewer but larger tiles. Of ragged requests over pages the mean tells, unless results may not
// depend on the others.
bool prefers_decode(const AttentionProblem& p) {
    constexpr int packed_rows = 32;
    if (!p.packed) return p.q_len <= 16 && rows_a_head(p) <= 64;
    return p.paged && !p.batch_invariant && rows_a_head(p) <= product(packed_rows, p.batch);
}

// Enough rows that share a tile to fill one of attn_prefill_wgmma: with fewer most of its products
// are thrown away, as where heads of a group that shares no divisor with 64 have few queries.
// Ragged requests it was never slower for, however short, where all heads of a group share a tile
// (docs/hopper_ladder.md); else the mean request counts, or, where results may not depend on the
// others, none.
bool prefers_wgmma(const AttentionProblem& p) {
    constexpr int rows = 128;
    const int together = heads_taken_together(KernelId::attn_prefill_wgmma, p);
    if (p.packed && together == p.group()) return true;
    if (p.packed && p.batch_invariant) return false;
    return product(p.packed ? p.q_len / std::max(p.batch, 1) : p.q_len, together) >= rows;
}

std::array<KernelId, 6> order_of(const AttentionProblem& p) {
    using enum KernelId;
    if (prefers_decode(p)) {
        return {attn_decode_cluster, attn_decode_mma,    attn_prefill_mma,
                attn_prefill_wgmma,  attn_decode_scalar, attn_prefill_scalar};
    }
    if (prefers_wgmma(p)) {
        return {attn_prefill_wgmma, attn_prefill_mma,    attn_decode_cluster,
                attn_decode_mma,    attn_prefill_scalar, attn_decode_scalar};
    }
    return {attn_prefill_mma, attn_prefill_wgmma,  attn_decode_cluster,
            attn_decode_mma,  attn_prefill_scalar, attn_decode_scalar};
}

AttentionChoice choice_of(const AttentionProblem& problem, const Fitting& fitting,
                          const DeviceFacts& facts) {
    const KernelId kernel = fitting.spec.kernel;
    const AttentionTile& tile = fitting.tile;
    AttentionChoice choice;
    choice.spec = fitting.spec;
    choice.group = heads_taken_together(kernel, problem);
    const RowTiles row_tiles = row_tiles_of(kernel, problem, tile.m);
    choice.row_tiles = static_cast<int>(row_tiles.each);
    const std::int64_t tiles = row_tiles.all();
    if (is_decode(kernel)) divide_keys(problem, tile, tiles, facts, choice);
    choice.workspace = workspace_of(problem, tile.m, tiles, {choice.splits, choice.cluster});
    if (problem.packed) {
        choice.work_map = helper_choice(KernelId::attn_work_map, kWorkMapThreads, facts);
        choice.workspace.map_bytes = 8 * static_cast<std::size_t>(choice.row_tiles);
    }
    if (reads_mask_bits(kernel, problem)) add_mask_bits(choice, problem.mask_sizes, facts);
    choice.geometry.grid[0] = static_cast<unsigned>(tiles * choice.splits);
    choice.geometry.block[0] = kAttentionThreads;
    choice.geometry.cluster[0] = static_cast<unsigned>(choice.cluster);
    choice.geometry.shared_bytes = tile.shared_bytes;
    if (kernel == KernelId::attn_prefill_wgmma) {
        set_staying_blocks(problem, tiles, tile, facts, choice);
    }
    return choice;
}

Ranking<AttentionChoice> rank(const AttentionProblem& problem, const DeviceFacts& facts,
                              std::optional<KernelId> forced, bool until_accepted) {
    Ranking<AttentionChoice> ranking;
    const auto order = order_of(problem);
    ranking.candidates.reserve(order.size());
    bool ended = false;
    for (const KernelId kernel : order) {
        Fitting fitting;
        Candidate candidate = judge(kernel, problem, facts, forced, fitting);
        if (ended && candidate.accepted()) candidate.reason = Reason::batch_invariant;
        ended = ended || ends_the_choice(problem, candidate);
        if (candidate.accepted() && !ranking.choice) {
            ranking.choice = choice_of(problem, fitting, facts);
        }
        ranking.candidates.push_back(candidate);
        if (until_accepted && ranking.choice) break;
    }
    return ranking;
}

}  // namespace

Ranking<AttentionChoice> rank_attention(const AttentionProblem& problem, const DeviceFacts& facts,
                                        std::optional<KernelId> forced) {
    return rank(problem, facts, forced, false);
}

Ranking<AttentionChoice> rank_until_accepted(const AttentionProblem& problem,
                                             const DeviceFacts& facts,
                                             std::optional<KernelId> forced) {
    return rank(problem, facts, forced, true);
}

std::optional<AttentionChoice> choose_attention(const AttentionProblem& problem,
                                                const DeviceFacts& facts,
                                                std::optional<KernelId> forced) {
    return rank_until_accepted(problem, facts, forced).choice;
}

std::vector<Spec> attention_catalogue(const AttentionProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    AttentionProblem problem = shape;
    problem.qo_indptr = {};
    DeviceFacts device = facts;
    const auto add = [&](int batch, int q_len) {
        problem.batch = batch;
        problem.q_len = q_len;
        problem.kv_len = 4096;
        const std::optional<AttentionChoice> choice = choose_attention(problem, device);
        if (!choice) return;
        for (const auto& helper : {choice->work_map, choice->mask_bits}) {
            add_once(specs, helper);
        }
        add_once(specs, choice->spec);
    };
    // The choice depends on q_len below the decode limit, and above only on how many tiles there
    // are in all: a lone request, and more than any GPU has SMs. GPUs of one arch differ in their
    // SMs, and what is compiled here may run on any of them: hence the smallest and the largest.
    // Pages may be large enough for boxes of keys, or not.
    for (const int page_size : {kWgmmaLeastBox, 1}) {
        if (!problem.paged && page_size == 1) break;
        problem.page_size = page_size;
        for (const int sm_count : {1, facts.sm_count, 1 << 20}) {
            device.sm_count = sm_count;
            for (const int batch : {1, 4096}) {
                for (int q_len = 1; q_len <= kMaxDecodeQueries + 1; ++q_len)
                    add(batch, q_len);
                for (const int q_len : {256, 65536})
                    add(batch, q_len);
            }
        }
    }
    return specs;
}

}  // namespace jitney::policy
