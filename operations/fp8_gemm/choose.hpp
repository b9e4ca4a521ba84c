// Which specialization of fp8_gemm runs a problem, in which geometry, and why not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/arithmetic.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct Fp8GemmProblem {
    int a = 0;  // a jitney::Format, e4m3 or e5m2
    int b = 0;
    int out = 0;         // any Format
    std::int64_t m = 0;  // at least 1, as n
    std::int64_t n = 0;
    std::int64_t k = 0;
    bool trans_a = false;
    bool trans_b = false;
    bool fast_accum = false;
    int scales = 0;           // a jitney::Fp8Scales
    std::int64_t groups = 0;  // of rows of a, with a matrix b each; 0: one b for all
    bool amax = false;
    bool aligned = true;      // every row of a and b begins at a multiple of 16 bytes
    bool out_aligned = true;  // and of out
    bool mapped = true;       // a, b and out have tensor maps, where they are aligned

    friend bool operator==(const Fp8GemmProblem&, const Fp8GemmProblem&) = default;
};

// Tiles of so many rows of a, if its groups are of about one size; the kernels count them.
inline std::int64_t fp8_gemm_row_tiles(const Fp8GemmProblem& problem, int tile_m) {
    const std::int64_t groups = std::min(problem.groups, problem.m);
    if (groups == 0) return ceil_div(problem.m, tile_m);
    return product(groups, ceil_div(ceil_div(problem.m, groups), tile_m));
}
// Columns of all matrices b.
inline std::int64_t fp8_gemm_columns(const Fp8GemmProblem& problem) {
    return problem.groups == 0 ? problem.n : product(problem.n, problem.groups);
}

inline bool has_no_rows(const Fp8GemmProblem& problem) noexcept {
    return problem.m == 0 || problem.n == 0;
}

// Whether what moves 16 bytes at a time for `other` can do so for `problem`.
inline bool is_as_aligned(const Fp8GemmProblem& problem, const Fp8GemmProblem& other) noexcept {
    return problem.aligned >= other.aligned && problem.out_aligned >= other.out_aligned;
}

// Device memory beside the tensors.
struct Fp8GemmWorkspace {
    std::size_t partial_bytes = 0;
    std::size_t counter_bytes = 0;  // AmaxCounters, where there is an amax, and arrivals
};

struct Fp8GemmChoice {
    Spec spec;
    Geometry geometry;
    int m_tiles = 0;
    int n_tiles = 0;
    int group = 1;        // tiles of M that neighbouring blocks share
    int splits = 1;       // of K, among blocks
    int split_tiles = 0;  // tiles of K in one split
    Fp8GemmWorkspace workspace;
};

// All candidates, and the choice of the first that is accepted. `forced` takes no other.
Ranking<Fp8GemmChoice> rank_fp8_gemm(const Fp8GemmProblem& problem, const DeviceFacts& facts,
                                     std::optional<KernelId> forced = std::nullopt);

// Memory for the problem wherever its operands will lie: none where it is refused.
Fp8GemmWorkspace fp8_gemm_workspace_anywhere(const Fp8GemmProblem& problem,
                                             const DeviceFacts& facts);

// The same on fp8_gemm_mma, with a specialization, a number of splits and a group given.
Fp8GemmChoice place_fp8_gemm(const Spec& spec, const Fp8GemmProblem& problem, int splits,
                             int group);

// And on fp8_gemm_wgmma, whose specialization has the number of splits.
Fp8GemmChoice place_fp8_gemm_wgmma(const Spec& spec, const Fp8GemmProblem& problem,
                                   const DeviceFacts& facts);

// What products of such operands can ask for, whatever their sizes and alignment.
std::vector<Spec> fp8_gemm_catalogue(const Fp8GemmProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
