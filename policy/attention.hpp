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

// A problem as far as the choice depends on it. Counts are positive, lengths may be zero, and
// kv_heads divides q_heads: the caller has checked.
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
    bool aligned = true;  // 16-byte aligned pointers, strides in multiples of 8 elements
    bool packed = false;  // requests of any length one behind the other, with a map of tiles
    bool paged = false;   // K and V in a pool of pages
    bool window = false;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
    bool append = false;  // new keys and values come with the call

    int group() const noexcept { return q_heads / kv_heads; }
    friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

// Device memory that a launch with splits needs beside its tensors; offsets into one block.
// All zero where one split does.
struct AttentionWorkspace {
    std::size_t arrived_bytes = 0;  // counters: zero before the first launch, kept zero by it
    std::size_t partial_out_bytes = 0;
    std::size_t partial_statistics_bytes = 0;

    std::size_t scratch_bytes() const noexcept {
        return partial_out_bytes + partial_statistics_bytes;
    }
    std::size_t total() const noexcept { return arrived_bytes + scratch_bytes(); }
};

struct AttentionChoice {
    Spec spec;
    Geometry geometry;
    int row_tiles = 0;
    int splits = 1;
    AttentionWorkspace workspace;
};

inline constexpr int kAttentionCandidates = 4;

// The candidates in the order of preference for this problem, each with its reason.
std::array<Candidate, kAttentionCandidates> rank_attention(const AttentionProblem& problem,
                                                           const DeviceFacts& facts,
                                                           std::optional<KernelId> forced = {});

// The first accepted candidate with its specialization and geometry; nothing where all were
// rejected. Empty problems (no rows) have no geometry: the caller returns before asking.
std::optional<AttentionChoice> choose_attention(const AttentionProblem& problem,
                                                const DeviceFacts& facts,
                                                std::optional<KernelId> forced = {});

// Every specialization that attention of such a shape can ask for while batch and lengths vary, on
// any GPU of that arch: what prewarm compiles so that serving compiles nothing. Mask, causality and
// alignment are part of the shape.
std::vector<Spec> attention_catalogue(const AttentionProblem& shape, const DeviceFacts& facts);

// Dynamic shared memory of one block of an attention specialization.
int attention_shared_bytes(const Spec& spec) noexcept;

}  // namespace jitney::policy
