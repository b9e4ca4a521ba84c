// Which specialization of fp8_quantize runs a problem, and how the matrix is divided into tiles.
#pragma once

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
};

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

// One launch: of the codes, unless the problem has none. For a problem that rank_fp8_quantize
// accepts.
Fp8QuantizeChoice choose_fp8_quantize(const Fp8QuantizeProblem& problem, const DeviceFacts& facts);

// The launch that goes ahead where scaling is dynamic and there are codes: amax alone.
Fp8QuantizeProblem amax_of(const Fp8QuantizeProblem& problem);
inline bool takes_two_launches(const Fp8QuantizeProblem& problem) noexcept {
    return problem.dynamic && problem.codes != 0;
}

// The one candidate, with its reason.
Candidate rank_fp8_quantize(const Fp8QuantizeProblem& problem, const DeviceFacts& facts);

// What such a problem can ask for, whatever its sizes, strides and alignment.
std::vector<Spec> fp8_quantize_catalogue(const Fp8QuantizeProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
