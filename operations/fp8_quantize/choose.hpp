// Which specialization of fp8_quantize runs a problem, and how the matrix is divided into tiles.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct Fp8QuantizeProblem {
    int format = 0;         // of x, a jitney::Format
    int out = 0;            // of the codes
    int codes = 0;          // a jitney::Fp8Codes
    bool amax = false;      // wanted, or needed for the multiplier
    bool dynamic = false;   // the multiplier comes of amax: two launches where there are codes
    int granularity = 0;    // a jitney::Fp8ScaleOf; all but the tensor's are dynamic
    std::int64_t rows = 0;  // without rows or cols, the launch writes its numbers alone
    std::int64_t cols = 0;
    bool dense = true;  // no gap between rows, neither in x nor in the codes
    // Whether rows begin at multiples of 16 bytes in x, of 8 in the codes, and of 16 in the
    // transposed codes.
    struct {
        bool x = true;
        bool codes = true;
    } first_row, every_row;
    bool transposed_rows = true;
    // The scale is the inverse of a number on the device, or there is one for each of some rows: a
    // launch writes it where x is empty, too.
    bool inverts = false;
    bool keeps_multiplier = true;  // the caller has a place for it; else the launches have
};

inline bool has_no_rows(const Fp8QuantizeProblem& problem) noexcept {
    return (problem.rows == 0 || problem.cols == 0) && !problem.inverts;
}

// Whether all that moves several elements at once for `other` can do so for `problem`.
inline bool is_as_aligned(const Fp8QuantizeProblem& problem,
                          const Fp8QuantizeProblem& other) noexcept {
    return problem.first_row.x >= other.first_row.x &&
           problem.first_row.codes >= other.first_row.codes &&
           problem.every_row.x >= other.every_row.x &&
           problem.every_row.codes >= other.every_row.codes &&
           problem.transposed_rows >= other.transposed_rows;
}

// The matrix as the kernel walks over it: rows that have no gap between them may be cut anew.
struct Fp8Tiling {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t last_cols = 0;  // elements of the last row
    int tiles = 0;
    int tiles_across = 1;
    int log2_across = 0;     // threads of a block that stand side by side
    bool recut = false;      // the distance between rows is cols now
    bool backwards = false;  // from the last tile on
    bool wide_x = false;     // several elements can be moved at once
    bool wide_codes = false;
    bool wide_transposed = false;
};

struct Fp8QuantizeChoice {
    Spec spec;
    Geometry geometry;
    Fp8Tiling tiling;
    std::size_t counter_bytes = 0;  // zero before the first launch, kept zero by it
};

// One launch: of the codes, unless the problem has none. For a problem that is accepted.
Fp8QuantizeChoice choose_fp8_quantize(const Fp8QuantizeProblem& problem, const DeviceFacts& facts);

// The launch that goes ahead where scaling is dynamic and there are codes: amax alone.
Fp8QuantizeProblem amax_of(const Fp8QuantizeProblem& problem);
inline bool takes_two_launches(const Fp8QuantizeProblem& problem) noexcept {
    return problem.dynamic && problem.codes != 0 && problem.granularity == 0;
}

// The launch of a cast that makes several scales.
struct Fp8ScalesChoice {
    Spec spec;
    Geometry geometry;
    // Of groups and blocks: tiles side by side, and whether several elements can be moved at once.
    int tiles_across = 1;
    bool wide_x = false;
    bool wide_codes = false;
};

// The launches of a cast. They use the same memory beside the tensors.
struct Fp8CastChoice {
    std::optional<Fp8ScalesChoice> scales;  // it alone, where there are several
    std::optional<Fp8QuantizeChoice> amax;  // ahead of the codes
    Fp8QuantizeChoice codes;
    std::size_t counter_bytes = 0;     // zero before the first launch, kept zero by it
    std::size_t multiplier_bytes = 0;  // where the first leaves the multiplier for the second
};

// The kernel that makes scales of that granularity.
KernelId fp8_quantize_kernel(int granularity) noexcept;

// Which of them a problem of several scales takes, and how; for one that its kernel accepts.
Candidate judge_fp8_scales(const Fp8QuantizeProblem& problem, const DeviceFacts& facts);
Fp8ScalesChoice choose_fp8_scales(const Fp8QuantizeProblem& problem, const DeviceFacts& facts);
std::vector<Spec> fp8_scales_catalogue(const Fp8QuantizeProblem& shape, const DeviceFacts& facts);

// All candidates, of which one makes such scales, and its choice. `forced` takes no other.
Ranking<Fp8CastChoice> rank_fp8_quantize(const Fp8QuantizeProblem& problem,
                                         const DeviceFacts& facts,
                                         std::optional<KernelId> forced = std::nullopt);

// What such a problem can ask for, whatever its sizes, strides and alignment; with a scale a row,
// whatever it has but the columns.
std::vector<Spec> fp8_quantize_catalogue(const Fp8QuantizeProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
