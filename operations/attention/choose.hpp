// Which attention kernel runs a problem, as which specialization, in which geometry.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

// Of the kernels of attention, those for few queries and many keys, and those on the tensor cores.
constexpr bool is_decode(KernelId kernel) noexcept {
    return kernel == KernelId::attn_decode_mma || kernel == KernelId::attn_decode_cluster ||
           kernel == KernelId::attn_decode_scalar;
}
constexpr bool is_mma(KernelId kernel) noexcept {
    return kernel == KernelId::attn_decode_mma || kernel == KernelId::attn_decode_cluster ||
           kernel == KernelId::attn_prefill_mma || kernel == KernelId::attn_prefill_wgmma;
}

// The first query of each request and the end of the last, in memory of the caller's: what stood
// there at another call can't be told, so that only two empty ones are equal.
struct HostIndptr {
    std::span<const int> ends = {};

    bool empty() const noexcept { return ends.empty(); }
    friend bool operator==(const HostIndptr& a, const HostIndptr& b) noexcept {
        return a.empty() && b.empty();
    }
};

// The mask's own sizes: 1 where it has no such dimension, or repeats what it has.
struct MaskSizes {
    int batch = 1;
    int heads = 1;
    int rows = 1;
    int keys = 1;

    friend bool operator==(const MaskSizes&, const MaskSizes&) = default;
};

// A problem as far as the choice depends on it. Counts are positive, lengths may be zero, and
// kv_heads divides q_heads: the caller has checked.
// Queries a request that the decode kernels take, which alone append new keys.
inline constexpr int kMaxDecodeQueries = 64;

struct AttentionProblem {
    int format = 0;  // a jitney::Format
    int batch = 0;
    int q_len = 0;  // of every request; packed: of all requests together
    int kv_len = 0;
    int q_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    bool causal = false;
    bool mask = false;
    bool aligned = true;         // 16-byte aligned pointers, strides in multiples of 8 elements
    bool mapped = true;          // the tensor copy engine can walk through Q, K, V and out
    bool packed = false;         // requests of any length one behind the other, with a map of tiles
    bool paged = false;          // K and V in a pool of pages
    std::int64_t page_size = 1;  // keys of a page
    bool window = false;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
    bool append = false;  // new keys and values come with the call
    // The result of a request may depend on the request alone: kv_len is then no less than that of
    // the longest, and kernel, tile and parts follow from its own lengths and the rest of the
    // shape.
    bool batch_invariant = false;
    std::uint64_t logits = 0;   // digest of a logits function of the caller's; 0: none
    HostIndptr qo_indptr = {};  // packed, where the host knows the lengths
    MaskSizes mask_sizes = {};

    int group() const noexcept { return q_heads / kv_heads; }
    friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

// Device memory that a launch needs beside its tensors, offsets into one block: for splits, for the
// map of packed queries, and for the bits of a mask.
struct AttentionWorkspace {
    std::size_t arrived_bytes = 0;  // counters: zero before the first launch, kept zero by it
    std::size_t partial_out_bytes = 0;
    std::size_t partial_statistics_bytes = 0;
    std::size_t map_bytes = 0;  // of each slot its request and its tile
    std::size_t mask_words_bytes = 0;
    std::size_t mask_summary_bytes = 0;

    std::size_t scratch_bytes() const noexcept {
        return partial_out_bytes + partial_statistics_bytes + map_bytes + mask_words_bytes +
               mask_summary_bytes;
    }
    std::size_t total() const noexcept { return arrived_bytes + scratch_bytes(); }
};

// A kernel that goes ahead of the attention kernel.
struct HelperChoice {
    Spec spec;
    Geometry geometry;
};

struct AttentionChoice {
    Spec spec;
    Geometry geometry;
    int group = 0;            // query heads that a tile takes together: of a KV head all, or a part
    int heads_at_a_time = 0;  // attn_prefill_wgmma: heads whose tiles take turns
    int row_tiles = 0;
    int splits = 1;      // blocks a tile, among which its keys are divided
    int cluster = 1;     // of these, those that form a cluster: all of them, or one
    int split_keys = 0;  // batch-invariant: keys of a part at least, a multiple of the keys a step;
    int split_parts = 0;  // and parts at most. 0: as many parts as splits
    AttentionWorkspace workspace;
    std::optional<HelperChoice> work_map;   // packed queries
    std::optional<HelperChoice> mask_bits;  // a mask that is read as bits
};

// The first accepted candidate runs, with its specialization and geometry. Empty problems (no rows)
// have no geometry: the caller returns before asking.
Ranking<AttentionChoice> rank_attention(const AttentionProblem& problem, const DeviceFacts& facts,
                                        std::optional<KernelId> forced = {});

// The same, but for the kernels behind the one that runs, which are not asked.
Ranking<AttentionChoice> rank_until_accepted(const AttentionProblem& problem,
                                             const DeviceFacts& facts,
                                             std::optional<KernelId> forced = {});

// Its choice alone.
std::optional<AttentionChoice> choose_attention(const AttentionProblem& problem,
                                                const DeviceFacts& facts,
                                                std::optional<KernelId> forced = {});

// Every specialization that attention of such a shape can ask for while batch and lengths vary, on
// any GPU of that arch: what prewarm compiles so that serving compiles nothing. Mask, causality,
// layout, options and alignment are part of the shape.
std::vector<Spec> attention_catalogue(const AttentionProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
