// Casts that make several scales.
#include <algorithm>
#include <limits>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/norm/row_shape.h"
#include "operations/fp8_quantize/choose.hpp"
#include "policy/row_tile.hpp"

namespace jitney::policy {
namespace {

// Vectors that a thread holds at most.
constexpr int kMostVectors = 8;

// And those that it holds where there are threads enough. Few rows are done the sooner, the more
// threads share them; of many, memory is the faster, the more of it each thread waits for.
int wanted_vectors(std::int64_t rows, int vectors, const DeviceFacts& facts) {
    constexpr std::int64_t kVectorsOfAnSm = 4096;
    if (product(rows, vectors) < kVectorsOfAnSm * facts.sm_count) return 1;
    return vectors <= 1024 ? 4 : 8;
}

struct RowForm {
    int width = 1;
    RowTile tile;
};

RowForm row_form(const Fp8QuantizeProblem& p, const DeviceFacts& facts) {
    // A width divides its double: whether rows of so many columns are whole vectors.
    const int rest = static_cast<int>(p.cols % 8);
    RowForm form;
    form.width = row_width(p.format, rest, p.every_row.x && p.every_row.codes);
    const int vectors = static_cast<int>(std::max<std::int64_t>(p.cols / form.width, 1));
    form.tile = row_tile(vectors, wanted_vectors(p.rows, vectors, facts), kMostVectors);
    return form;
}

std::int64_t row_blocks(const Fp8QuantizeProblem& p, const RowForm& form) {
    return ceil_div(p.rows, std::int64_t{rows_a_block(form.tile.threads)});
}

int rows_of_scale(const Fp8QuantizeProblem& p) {
    return p.granularity == kScaleOfBlock ? kFp8ScaleCols : 1;
}

std::int64_t group_tiles_across(const Fp8QuantizeProblem& p) {
    return ceil_div(p.cols, std::int64_t{kFp8ScaleCols});
}

std::int64_t group_tiles_down(const Fp8QuantizeProblem& p) {
    return ceil_div(p.rows, std::int64_t{fp8_group_tile_rows(rows_of_scale(p))});
}

Fp8ScalesChoice choose_rows(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    const RowForm form = row_form(problem, facts);
    Fp8ScalesChoice choice;
    choice.spec = spec_of(KernelId::fp8_quantize_rows, facts.arch,
                          {{"format", problem.format},
                           {"out", problem.out},
                           {"width", form.width},
                           {"threads", form.tile.threads},
                           {"vectors", form.tile.vectors}});
    choice.geometry.grid[0] = static_cast<unsigned>(row_blocks(problem, form));
    choice.geometry.block[0] = static_cast<unsigned>(row_block_threads(form.tile.threads));
    return choice;
}

Fp8ScalesChoice choose_groups(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    Fp8ScalesChoice choice;
    choice.spec = spec_of(
        KernelId::fp8_quantize_groups, facts.arch,
        {{"format", problem.format}, {"out", problem.out}, {"scale_rows", rows_of_scale(problem)}});
    choice.wide_x = problem.every_row.x;
    choice.wide_codes = problem.every_row.codes;
    choice.tiles_across = static_cast<int>(group_tiles_across(problem));
    choice.geometry.grid[0] =
        static_cast<unsigned>(choice.tiles_across * group_tiles_down(problem));
    choice.geometry.block[0] = static_cast<unsigned>(fp8_group_threads(rows_of_scale(problem)));
    return choice;
}

}  // namespace

Candidate judge_fp8_scales(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    const KernelId kernel = fp8_quantize_kernel(problem.granularity);
    const Candidate candidate = judge_arch_and_format(kernel, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    if (problem.granularity == kScaleOfRow) {
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        if (problem.cols > most) return {kernel, Reason::row_too_long, problem.cols, most};
        const std::int64_t blocks = row_blocks(problem, row_form(problem, facts));
        if (blocks > kMaxGrid) return {kernel, Reason::grid_too_large, blocks, kMaxGrid};
        return candidate;
    }
    const std::int64_t across = group_tiles_across(problem);
    const std::int64_t down = group_tiles_down(problem);
    if (product(across, down) > kMaxTiles) return {kernel, Reason::too_many_tiles, across, down};
    return candidate;
}

Fp8ScalesChoice choose_fp8_scales(const Fp8QuantizeProblem& problem, const DeviceFacts& facts) {
    Fp8ScalesChoice choice = problem.granularity == kScaleOfRow ? choose_rows(problem, facts)
                                                                : choose_groups(problem, facts);
    choice.geometry.programmatic = has_programmatic_launches(facts);
    choice.geometry.shared_bytes = shared_bytes(choice.spec);
    return choice;
}

std::vector<Spec> fp8_scales_catalogue(const Fp8QuantizeProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    Fp8QuantizeProblem problem = shape;
    for (const bool aligned : {true, false}) {
        problem.every_row = {aligned, aligned};
        for (const std::int64_t rows : {std::int64_t{1}, kMaxGrid}) {
            problem.rows = rows;
            add_once(specs, choose_fp8_scales(problem, facts).spec);
        }
    }
    return specs;
}

}  // namespace jitney::policy
