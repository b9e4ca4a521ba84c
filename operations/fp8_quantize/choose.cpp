#include "operations/fp8_quantize/choose.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/amax.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"

namespace jitney::policy {
namespace {

// From here on there is an instruction for the conversion.
constexpr int kConvertingArch = 89;
// With amax there are no more blocks than are at work at a time, and each takes several tiles: all
// of them queue for the same counters. Without, a block takes one tile.
constexpr int kBlocksAMultiprocessor = 8;
constexpr int kMaxLog2Across = 8;

// As many threads side by side as waste no more than an eighth of them at the end of a row; fewer
// than eight only where a row has no more for them.
int log2_across_of(std::int64_t cols) {
    const std::int64_t groups = ceil_div(cols, kFp8ThreadCols);
    for (int log2 = kMaxLog2Across; log2 > 3; --log2) {
        const std::int64_t across = std::int64_t{1} << log2;
        if (ceil_div(groups, across) * across - groups <= groups / 8) return log2;
    }
    int log2 = 0;
    while (log2 < 3 && (std::int64_t{1} << log2) < groups)
        ++log2;
    return log2;
}

Fp8Tiling tiling_of(const Fp8QuantizeProblem& p) {
    Fp8Tiling tiling;
    const bool transposes = (p.codes & kTransposedCodes) != 0;
    tiling.rows = p.rows;
    tiling.cols = tiling.last_cols = p.cols;
    if (transposes) {
        tiling.log2_across = kFp8TransposeLog2Across;
    } else if (p.rows == 0 || p.cols == 0) {
        tiling.rows = tiling.cols = tiling.last_cols = 0;
    } else if (p.dense || p.rows == 1) {
        const std::int64_t elements = p.rows * p.cols;
        tiling.recut = true;
        tiling.cols = std::int64_t{kFp8ThreadCols} << kMaxLog2Across;
        tiling.rows = ceil_div(elements, tiling.cols);
        tiling.last_cols = elements - (tiling.rows - 1) * tiling.cols;
        tiling.log2_across = kMaxLog2Across;
    } else {
        tiling.log2_across = log2_across_of(p.cols);
    }
    tiling.wide_x = tiling.recut ? p.first_row.x : p.every_row.x;
    tiling.wide_codes = tiling.recut ? p.first_row.codes : p.every_row.codes;
    tiling.wide_transposed = p.transposed_rows;
    // The pass ahead read x from its first tile on: what it read last may still be in the L2.
    tiling.backwards = takes_two_launches(p);
    return tiling;
}

// An empty matrix has a tile too, whose block finds nothing in it.
std::int64_t tiles_across_of(const Fp8Tiling& tiling) {
    const std::int64_t cols = std::max<std::int64_t>(tiling.cols, 1);
    return ceil_div(cols, std::int64_t{kFp8ThreadCols} << tiling.log2_across);
}

std::int64_t tiles_down_of(const Fp8Tiling& tiling) {
    const std::int64_t rows = std::max<std::int64_t>(tiling.rows, 1);
    return ceil_div(rows,
                    std::int64_t{kFp8ThreadRows} * (kFp8QuantizeThreads >> tiling.log2_across));
}

}  // namespace

Fp8QuantizeProblem amax_of(const Fp8QuantizeProblem& problem) {
    Fp8QuantizeProblem amax = problem;
    amax.codes = kNoCodes;
    amax.amax = true;
    return amax;
}

Fp8QuantizeChoice choose_fp8_quantize(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    const bool amax = problem.amax && !takes_two_launches(problem);
    Fp8QuantizeChoice choice;
    // Without codes their format is a number that the launch brings.
    const bool codes = problem.codes != kNoCodes;
    const bool software = codes && facts.arch.number < kConvertingArch;
    choice.spec = spec_of(KernelId::fp8_quantize, facts.arch,
                          {{"format", problem.format},
                           {"out", codes ? problem.out : kFp8E4m3},
                           {"codes", problem.codes},
                           {"amax", amax},
                           {"software", software}});
    choice.tiling = tiling_of(problem);
    const std::int64_t across = tiles_across_of(choice.tiling);
    const std::int64_t tiles = across * tiles_down_of(choice.tiling);
    choice.tiling.tiles_across = static_cast<int>(across);
    choice.tiling.tiles = static_cast<int>(tiles);
    const std::int64_t most = std::int64_t{facts.sm_count} * kBlocksAMultiprocessor;
    choice.geometry.grid[0] = static_cast<unsigned>(amax ? std::min(tiles, most) : tiles);
    choice.geometry.block[0] = kFp8QuantizeThreads;
    choice.geometry.programmatic = has_programmatic_launches(facts);
    choice.geometry.shared_bytes = shared_bytes(choice.spec);
    choice.counter_bytes = amax ? sizeof(AmaxCounters) : 0;
    return choice;
}

namespace {

Fp8CastChoice cast_of(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    Fp8CastChoice choice;
    if (problem.granularity != kScaleOfTensor) {
        choice.scales = choose_fp8_scales(problem, facts);
        return choice;
    }
    choice.codes = choose_fp8_quantize(problem, facts);
    choice.counter_bytes = choice.codes.counter_bytes;
    if (!takes_two_launches(problem)) return choice;
    choice.amax = choose_fp8_quantize(amax_of(problem), facts);
    choice.counter_bytes = choice.amax->counter_bytes;
    if (!problem.keeps_multiplier) choice.multiplier_bytes = sizeof(float);
    return choice;
}

Candidate judge(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::fp8_quantize, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const Fp8Tiling tiling = tiling_of(problem);
    const std::int64_t across = tiles_across_of(tiling);
    const std::int64_t down = tiles_down_of(tiling);
    std::int64_t tiles = 0;
    if (__builtin_mul_overflow(across, down, &tiles) || tiles > kMaxTiles) {
        return {KernelId::fp8_quantize, Reason::too_many_tiles, across, down};
    }
    return candidate;
}

}  // namespace

KernelId fp8_quantize_kernel(int granularity) noexcept {
    switch (granularity) {
        case kScaleOfTensor:
            return KernelId::fp8_quantize;
        case kScaleOfRow:
            return KernelId::fp8_quantize_rows;
        default:
            return KernelId::fp8_quantize_groups;
    }
}

Ranking<Fp8CastChoice> rank_fp8_quantize(const Fp8QuantizeProblem& problem,
                                         const DeviceFacts& facts, std::optional<KernelId> forced) {
    Ranking<Fp8CastChoice> ranking;
    for (const KernelId kernel :
         {KernelId::fp8_quantize, KernelId::fp8_quantize_rows, KernelId::fp8_quantize_groups}) {
        if (kernel != fp8_quantize_kernel(problem.granularity)) {
            ranking.candidates.push_back({kernel, Reason::other_granularity});
        } else if (forced && *forced != kernel) {
            ranking.candidates.push_back({kernel, Reason::not_forced});
        } else {
            ranking.candidates.push_back(problem.granularity == kScaleOfTensor
                                             ? judge(problem, facts)
                                             : judge_fp8_scales(problem, facts));
            if (ranking.candidates.back().accepted()) ranking.choice = cast_of(problem, facts);
        }
    }
    return ranking;
}

std::vector<Spec> fp8_quantize_catalogue(const Fp8QuantizeProblem& shape,
                                         const DeviceFacts& facts) {
    Fp8QuantizeProblem problem = shape;
    problem.rows = problem.cols = 1;
    std::vector<Spec> specs;
    const std::optional<Fp8CastChoice> choice = rank_fp8_quantize(problem, facts).choice;
    if (!choice) return specs;
    if (choice->scales) return fp8_scales_catalogue(shape, facts);
    if (choice->amax) specs.push_back(choice->amax->spec);
    specs.push_back(choice->codes.spec);
    return specs;
}

}  // namespace jitney::policy
