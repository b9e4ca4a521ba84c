#include "policy/attention.hpp"

#include <algorithm>
#include <limits>

#include "kernel_sources/attention/layout.h"
#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

// The kernels count packed rows and keys in 32 bits, and look a few tiles past the last.
constexpr std::int64_t kMaxRows = 0x7fff0000;
constexpr std::int64_t kMaxKeys = 0x7fff0000;
constexpr int kMaxDecodeQueries = 64;
constexpr int kDecodeTileM = 16;

struct Tile {
    int m;
    int n;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// Of two counts; what would not fit into 64 bits stays above every limit.
std::int64_t product(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

int element_bytes(int format) {
    return format == kFp32 ? 4 : 2;
}

std::int64_t rows_a_head(const AttentionProblem& p) {
    return static_cast<std::int64_t>(p.q_len) * p.group();
}

std::int64_t heads(const AttentionProblem& p) {
    return static_cast<std::int64_t>(p.batch) * p.kv_heads;
}

bool is_decode(KernelId kernel) {
    return kernel == KernelId::attn_decode_mma || kernel == KernelId::attn_decode_scalar;
}

bool is_mma(KernelId kernel) {
    return kernel == KernelId::attn_decode_mma || kernel == KernelId::attn_prefill_mma;
}

// The wide tile reads each fragment of K and V once for two blocks of rows, which is what mma.sync
// needs on Hopper; it pays once there are enough tiles for every SM. Above head_dim 128 the
// accumulators of two blocks would not fit into the registers, and where a mask is read neither. It
// takes fewer keys where that keeps three blocks on an SM, or what sm_120 has room for, from
// spilling.
Tile prefill_mma_tile(const AttentionProblem& p, const DeviceFacts& facts) {
    const int dim = mma_dim(p.head_dim);
    const bool wide =
        dim <= 128 && !p.mask && product(ceil_div(rows_a_head(p), 128), heads(p)) >= facts.sm_count;
    if (!wide) {
        const bool fits =
            prefill_mma_shared_bytes(p.head_dim, 64, 64) <= facts.shared_bytes_per_block;
        return {64, fits ? 64 : 48};
    }
    if (dim > 32 && dim <= 64) return {128, facts.arch.number >= 100 ? 32 : 48};
    return {128, dim > 112 && facts.arch.number >= 120 ? 48 : 64};
}

// At least this many stages hide the memory's latency behind the products.
constexpr int kMinDecodeStages = 3;

// Ring stages that fit into `bytes` of shared memory.
int decode_stages_within(int bytes, const AttentionProblem& p, int tile_n) {
    return bytes / (decode_mma_ring_bytes(p.head_dim, tile_n, 1) * kAttentionWarps);
}

Tile decode_mma_tile(const AttentionProblem& p, const DeviceFacts& facts) {
    const bool wide = mma_dim(p.head_dim) <= 128 &&
                      decode_stages_within(facts.shared_bytes_per_block, p, 32) >= kMinDecodeStages;
    return {kDecodeTileM, wide ? 32 : 16};
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

Tile tile_of(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts) {
    switch (kernel) {
        case KernelId::attn_prefill_mma:
            return prefill_mma_tile(p, facts);
        case KernelId::attn_decode_mma:
            return decode_mma_tile(p, facts);
        case KernelId::attn_decode_scalar:
            return decode_scalar_tile(p);
        default:
            return prefill_scalar_tile(p);
    }
}

// Ring stages of attn_decode_mma: as many as let two blocks share an SM, or, where that would
// leave too few loads in flight, as many as one block can have.
int decode_stages(const AttentionProblem& p, Tile tile, const DeviceFacts& facts) {
    constexpr int most = 8;
    constexpr int reserve = 1024;  // the system's share of each resident block
    const int paired = decode_stages_within(facts.shared_bytes_per_sm / 2 - reserve, p, tile.n);
    if (paired >= kMinDecodeStages) return std::min(paired, most);
    const int alone = decode_stages_within(facts.shared_bytes_per_block, p, tile.n);
    return std::clamp(alone, kMinDecodeStages, most);
}

Spec make_spec(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts) {
    const Tile tile = tile_of(kernel, p, facts);
    Spec spec;
    spec.kernel = kernel;
    spec.arch_number = facts.arch.number;
    spec.arch_suffix = facts.arch.suffix;
    std::size_t slot = 0;
    const auto add = [&](int value) { spec.values[slot++] = static_cast<std::int16_t>(value); };
    add(p.head_dim);
    add(p.format);
    add(tile.m);
    add(tile.n);
    if (kernel == KernelId::attn_decode_mma) add(decode_stages(p, tile, facts));
    add(kDenseKv);
    // The only query of a request sees all keys, causal or not: one specialization serves both.
    add(p.causal && p.q_len > 1 ? 1 : 0);
    add(p.mask ? 1 : 0);
    return spec;
}

int blocks_an_sm(const Spec& spec, const DeviceFacts& facts) {
    const int shared = attention_shared_bytes(spec) + 1024;
    const int by_registers = value_of(spec, "head_dim") <= 128 ? 3 : 2;
    return std::clamp(facts.shared_bytes_per_sm / shared, 1, by_registers);
}

// Splits of the keys: those of one to four waves of blocks are compared by the time that the
// waves take, a tile of keys as the unit, with a start-up of its own for every block.
int choose_splits(const AttentionProblem& p, const Spec& spec, std::int64_t tiles,
                  const DeviceFacts& facts) {
    constexpr std::int64_t start_up = 3;
    const int keys_a_tile =
        value_of(spec, "tile_n") * (spec.kernel == KernelId::attn_decode_mma ? kAttentionWarps : 1);
    const std::int64_t key_tiles = ceil_div(p.kv_len, keys_a_tile);
    if (key_tiles == 0 || tiles == 0) return 1;
    const std::int64_t slots =
        static_cast<std::int64_t>(facts.sm_count) * blocks_an_sm(spec, facts);
    std::int64_t best = 1;
    std::int64_t best_time = ceil_div(tiles, slots) * (key_tiles + start_up);
    for (std::int64_t waves = 1; waves <= 4; ++waves) {
        const std::int64_t splits = std::min(waves * slots / tiles, key_tiles);
        if (splits <= best) continue;
        const std::int64_t time =
            ceil_div(tiles * splits, slots) * (ceil_div(key_tiles, splits) + start_up);
        if (time < best_time) {
            best = splits;
            best_time = time;
        }
    }
    // No split without keys.
    return static_cast<int>(ceil_div(key_tiles, ceil_div(key_tiles, best)));
}

AttentionWorkspace workspace_of(const Spec& spec, std::int64_t tiles, int splits) {
    if (splits == 1) return {};
    const auto rows = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(splits) *
                      static_cast<std::size_t>(value_of(spec, "tile_m"));
    return {static_cast<std::size_t>(tiles) * 4,
            rows * static_cast<std::size_t>(value_of(spec, "head_dim")) * 4, rows * 8};
}

std::int64_t row_tiles_of(const AttentionProblem& p, int tile_m) {
    return ceil_div(rows_a_head(p), tile_m);
}

Candidate judge(KernelId kernel, const AttentionProblem& p, const DeviceFacts& facts,
                std::optional<KernelId> forced) {
    const auto reject = [kernel](Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
        return Candidate{kernel, reason, a, b};
    };
    if (forced && *forced != kernel) return reject(Reason::not_forced);
    const int minimum = info(kernel).minimum_arch;
    if (facts.arch.number < minimum) {
        return reject(Reason::arch_too_old, minimum, facts.arch.number);
    }
    if (!takes_format(info(KernelId::attn_prefill_scalar), p.format)) {
        return reject(Reason::format_unknown, p.format);
    }
    const int limit = is_mma(kernel) ? 256 : 512;
    if (is_mma(kernel)) {
        if (p.format == kFp32) return reject(Reason::format_needs_scalar);
        if (p.head_dim % 8 != 0) return reject(Reason::head_dim_not_multiple, p.head_dim, 8);
    }
    if (p.head_dim > limit) return reject(Reason::head_dim_too_large, p.head_dim, limit);
    if (is_mma(kernel) && !p.aligned) return reject(Reason::not_aligned);
    if (is_decode(kernel) && p.q_len > kMaxDecodeQueries) {
        return reject(Reason::too_many_queries, p.q_len, kMaxDecodeQueries);
    }
    const int shared = attention_shared_bytes(make_spec(kernel, p, facts));
    if (shared > facts.shared_bytes_per_block) {
        return reject(Reason::shared_memory, shared, facts.shared_bytes_per_block);
    }
    if (rows_a_head(p) > kMaxRows) return reject(Reason::too_many_rows, rows_a_head(p), kMaxRows);
    if (p.kv_len > kMaxKeys) return reject(Reason::too_many_keys, p.kv_len, kMaxKeys);
    const std::int64_t blocks = product(row_tiles_of(p, tile_of(kernel, p, facts).m), heads(p));
    if (blocks > kMaxGrid) return reject(Reason::grid_too_large, blocks, kMaxGrid);
    return Candidate{kernel};
}

// Few enough rows that streaming K and V once a 16-row tile, divided over the whole GPU, beats
// fewer but larger tiles.
bool prefers_decode(const AttentionProblem& p) {
    return p.q_len <= 16 && rows_a_head(p) <= 64;
}

std::array<KernelId, kAttentionCandidates> order_of(const AttentionProblem& p) {
    using enum KernelId;
    if (prefers_decode(p)) {
        return {attn_decode_mma, attn_prefill_mma, attn_decode_scalar, attn_prefill_scalar};
    }
    return {attn_prefill_mma, attn_decode_mma, attn_prefill_scalar, attn_decode_scalar};
}

}  // namespace

int attention_shared_bytes(const Spec& spec) noexcept {
    const int head_dim = value_of(spec, "head_dim");
    const int tile_m = value_of(spec, "tile_m");
    const int tile_n = value_of(spec, "tile_n");
    switch (spec.kernel) {
        case KernelId::attn_prefill_mma:
            return prefill_mma_shared_bytes(head_dim, tile_m, tile_n);
        case KernelId::attn_decode_mma:
            return decode_mma_shared_bytes(head_dim, tile_m, tile_n, value_of(spec, "stages"));
        default:
            return scalar_shared_bytes(head_dim, element_bytes(value_of(spec, "format")), tile_m,
                                       tile_n);
    }
}

std::array<Candidate, kAttentionCandidates> rank_attention(const AttentionProblem& problem,
                                                           const DeviceFacts& facts,
                                                           std::optional<KernelId> forced) {
    std::array<Candidate, kAttentionCandidates> candidates;
    const auto order = order_of(problem);
    for (std::size_t i = 0; i < order.size(); ++i) {
        candidates[i] = judge(order[i], problem, facts, forced);
    }
    return candidates;
}

std::optional<AttentionChoice> choose_attention(const AttentionProblem& problem,
                                                const DeviceFacts& facts,
                                                std::optional<KernelId> forced) {
    for (const KernelId kernel : order_of(problem)) {
        if (!judge(kernel, problem, facts, forced).accepted()) continue;
        AttentionChoice choice;
        choice.spec = make_spec(kernel, problem, facts);
        choice.row_tiles =
            static_cast<int>(row_tiles_of(problem, tile_of(kernel, problem, facts).m));
        const std::int64_t tiles = choice.row_tiles * heads(problem);
        if (is_decode(kernel)) choice.splits = choose_splits(problem, choice.spec, tiles, facts);
        choice.workspace = workspace_of(choice.spec, tiles, choice.splits);
        choice.geometry.grid[0] = static_cast<unsigned>(tiles * choice.splits);
        choice.geometry.block[0] = kAttentionThreads;
        choice.geometry.shared_bytes = attention_shared_bytes(choice.spec);
        return choice;
    }
    return std::nullopt;
}

std::vector<Spec> attention_catalogue(const AttentionProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    AttentionProblem problem = shape;
    DeviceFacts device = facts;
    const auto add = [&](int batch, int q_len) {
        problem.batch = batch;
        problem.q_len = q_len;
        problem.kv_len = 4096;
        const std::optional<AttentionChoice> choice = choose_attention(problem, device);
        if (choice && std::find(specs.begin(), specs.end(), choice->spec) == specs.end()) {
            specs.push_back(choice->spec);
        }
    };
    // The choice depends on q_len below the decode limit, and above only on how many tiles there
    // are in all: a lone request, and more than any GPU has SMs. GPUs of one arch differ in their
    // SMs, and what is compiled here may run on any of them: hence the smallest and the largest.
    for (const int sm_count : {1, facts.sm_count, 1 << 20}) {
        device.sm_count = sm_count;
        for (const int batch : {1, 4096}) {
            for (int q_len = 1; q_len <= kMaxDecodeQueries + 1; ++q_len)
                add(batch, q_len);
            for (const int q_len : {256, 65536})
                add(batch, q_len);
        }
    }
    return specs;
}

}  // namespace jitney::policy
