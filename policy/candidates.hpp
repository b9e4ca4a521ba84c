// An ordered list of candidates, each accepted or rejected with a reason. On the hot path a reason
// is a code and two numbers; it becomes a sentence only where somebody reads it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/kernels.hpp"

namespace jitney::policy {

enum class Reason : std::uint8_t {
    accepted,
    arch_too_old,           // a: needed, b: the device's
    other_arch,             // b: the device's; the kernel has instructions of one chip
    no_fp8_tensor_cores,    // a: needed, b: the device's
    format_needs_scalar,    // tensor cores take bf16 and fp16
    head_dim_not_multiple,  // a: head_dim, b: of
    head_dim_too_large,     // a: head_dim, b: limit
    not_aligned,            // 16-byte vectors are not possible
    rows_not_aligned,       // rows of operands begin anywhere
    not_along_k,            // an operand's rows don't run along k
    nothing_along_k,        // there is nothing to add up
    not_mapped,             // the tensor copy engine can't walk through a tensor
    too_many_queries,       // a: q_len, b: limit
    packed_queries,         // requests of several lengths
    mask_too_wide,          // a: keys, b: limit
    append_needs_decode,    // new keys come with the call
    shared_memory,          // a: needed, b: the device's
    grid_too_large,         // a: blocks, b: limit
    not_forced,             // another kernel was asked for by name
    format_unknown,         // a: a format that no constant of the kernel names
    too_many_rows,          // a: q_len * group, b: limit
    too_many_keys,          // a: kv_len, b: limit
    token_too_large,        // a: elements a token, b: limit
    batch_invariant,        // the kernel of smaller batches can't run this one
    too_many_tiles,         // a: across, b: down
    row_too_long,           // a: elements, b: limit
    other_granularity,      // it makes scales of other parts of a tensor
};

struct Candidate {
    KernelId kernel{};
    Reason reason = Reason::accepted;
    std::int64_t a = 0;
    std::int64_t b = 0;

    bool accepted() const noexcept { return reason == Reason::accepted; }
};

// The candidates in the order of preference, each with its reason, and the choice that was made.
template <class Choice>
struct Ranking {
    std::vector<Candidate> candidates;
    std::optional<Choice> choice;  // nothing where none was accepted
};

// The ranking of an operation which one kernel does; `choose` makes the choice of it.
template <class Choice, class Choose>
Ranking<Choice> ranking_of_one(const Candidate& candidate, const Choose& choose) {
    if (!candidate.accepted()) return {{candidate}, std::nullopt};
    return {{candidate}, choose()};
}

// Every kernel asks for this first: an arch that it runs on, and a format that it has code for.
Candidate judge_arch_and_format(KernelId kernel, const Arch& arch, int format) noexcept;
// Whether the kernel has code for that head_dim.
Candidate judge_head_dim(KernelId kernel, int head_dim) noexcept;

// "head_dim 100 is not a multiple of 8"; empty where the candidate was accepted.
std::string reason_text(const Candidate& candidate);

// Blocks along x.
inline constexpr std::int64_t kMaxGrid = 0x7fffffff;

// Elements of a token that kernels count in an int, and look a block past the last.
inline constexpr std::int64_t kMaxToken = 0x7fff0000;

// Tiles that kernels count in an int, and look a grid past the last.
inline constexpr std::int64_t kMaxTiles = 0x7f000000;

// The grid and block of a launch.
struct Geometry {
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    std::array<unsigned, 3> cluster{1, 1, 1};
    int shared_bytes = 0;
    bool programmatic = false;  // may begin before its predecessor in the stream has ended
};

}  // namespace jitney::policy
