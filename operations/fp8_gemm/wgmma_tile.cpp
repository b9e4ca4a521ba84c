#include "operations/fp8_gemm/wgmma_tile.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/gemm_wgmma.h"

namespace jitney::policy {
namespace {

struct Shape {
    int m;
    int n;
    bool swap;
    int splits;
    int stages;
    int pieces;       // where rows of the output begin at multiples of 16 bytes
    double fast;      // what 128 of k take, in microseconds on an SM of an H200,
    double promoted;  // and with promotion,
    double end;       // and what comes before and behind them
    double blocks;    // as promoted, with scales of blocks; 0: not taken for them
    bool grouped;     // taken for groups of rows
};
constexpr std::array kShapes = {Shape{16, 64, true, 1, 8, 0, 0.104, 0.104, 0.3, 0.112, true},
                                Shape{16, 64, true, 2, 8, 0, 0.104, 0.104, 0.6, 0.112, false},
                                Shape{16, 64, true, 4, 8, 0, 0.087, 0.087, 1.3, 0.095, false},
                                Shape{32, 64, true, 1, 8, 0, 0.104, 0.121, 0.56, 0.13, true},
                                Shape{32, 64, true, 2, 8, 0, 0.136, 0.136, 0.7, 0.145, false},
                                Shape{32, 64, true, 4, 8, 0, 0.104, 0.110, 1.6, 0, false},
                                Shape{64, 64, true, 1, 8, 0, 0.125, 0.131, 0.8, 0.144, true},
                                Shape{64, 64, true, 2, 8, 0, 0.138, 0.150, 1.4, 0.165, false},
                                Shape{64, 64, true, 4, 8, 0, 0.138, 0.138, 2.5, 0, false},
                                Shape{96, 64, true, 1, 8, 0, 0.150, 0.165, 1, 0.19, false},
                                Shape{96, 64, true, 2, 8, 0, 0.165, 0.180, 1.8, 0.21, false},
                                Shape{192, 64, true, 1, 5, 0, 0.240, 0.260, 1.6, 0, false},
                                Shape{192, 64, true, 2, 5, 0, 0.260, 0.280, 2.5, 0, false},
                                Shape{128, 64, true, 2, 7, 0, 0.173, 0.221, 2.2, 0.28, false},
                                Shape{64, 64, false, 1, 8, 0, 0.111, 0.138, 0.45, 0.138, false},
                                Shape{64, 64, false, 2, 8, 0, 0.138, 0.155, 1.6, 0, false},
                                Shape{128, 64, false, 1, 7, 2, 0.170, 0.194, 0.8, 0.25, false},
                                Shape{128, 64, false, 2, 6, 0, 0.205, 0.221, 2.3, 0, false},
                                Shape{128, 96, false, 1, 7, 0, 0.233, 0.218, 2.8, 0, false},
                                Shape{128, 128, false, 1, 6, 2, 0.277, 0.277, 1.8, 0.41, true},
                                Shape{128, 128, false, 2, 4, 2, 0.388, 0.388, 2.5, 0, false},
                                Shape{192, 128, true, 1, 5, 0, 0.457, 0.477, 2.2, 0, false},
                                Shape{128, 192, false, 1, 4, 3, 0.457, 0.477, 1.8, 0, false},
                                Shape{128, 256, false, 1, 4, 2, 0.609, 0.697, 2.2, 0.79, true},
                                Shape{256, 128, false, 1, 4, 2, 0.625, 0.697, 2.2, 0.82, false}};

constexpr double kStart = 2.1;         // a launch, the first bytes from memory, the last to it
constexpr double kBytes = 3.6e6;       // a microsecond, from memory
constexpr double kNearBytes = 12.0e6;  // and from the L2, to all SMs
constexpr double kOverlap = 0.15;      // what does not overlap of all that should

constexpr int kSharedBytes = 227 * 1024;  // that a block may have on sm_90a

int element_bytes(int format) {
    if (format == kFp32) return 4;
    return format == kFp16 || format == kBf16 ? 2 : 1;
}

Fp8WgmmaTiles layout_of(const Shape& shape, const Fp8GemmProblem& problem) {
    return {.u = shape.swap ? shape.n : shape.m,
            .v = shape.swap ? shape.m : shape.n,
            .stages = shape.stages,
            .swap = shape.swap,
            .splits = shape.splits,
            .out_bytes = element_bytes(problem.out),
            .pieces = shape.pieces,
            .block_scales = problem.scales == kBlockScales,
            .grouped = problem.groups > 0};
}

// Sums of blocks of k are scaled where they are promoted.
bool promotes(const Fp8GemmProblem& problem) {
    return !problem.fast_accum || problem.scales == kBlockScales;
}

// Without the copy engine where it can't write the rows, and with fewer stages where scales of
// blocks take their memory.
Fp8WgmmaTile tile_of(const Shape& shape, const Fp8GemmProblem& problem) {
    Fp8WgmmaTiles layout = layout_of(shape, problem);
    const bool whole_lines = layout.piece_columns(promotes(problem)) * layout.out_bytes % 128 == 0;
    if (!problem.out_aligned || !whole_lines || problem.groups > 0) layout.pieces = 0;
    while (layout.bytes() > kSharedBytes)
        --layout.stages;
    return {.m = shape.m,
            .n = shape.n,
            .swap = shape.swap,
            .stages = layout.stages,
            .splits = shape.splits,
            .pieces = layout.pieces};
}

double number(std::int64_t value) {
    return static_cast<double>(value);
}

// Blocks that find room at a time. Clusters of four do not fill the SMs that lie together.
std::int64_t places(const Shape& shape, const DeviceFacts& facts) {
    return shape.splits == 4 ? std::max(facts.sm_count * 7 / 8, 1) : facts.sm_count;
}

double step_of(const Shape& shape, const Fp8GemmProblem& problem) {
    if (problem.scales == kBlockScales) return shape.blocks;
    return problem.fast_accum ? shape.fast : shape.promoted;
}

double time_of(const Shape& shape, const Fp8GemmProblem& p, const DeviceFacts& facts) {
    const std::int64_t tiles = product(fp8_gemm_row_tiles(p, shape.m), ceil_div(p.n, shape.n));
    const std::int64_t blocks = product(tiles, shape.splits);
    const std::int64_t steps = ceil_div(ceil_div(p.k, kFp8WgmmaTileK), shape.splits);
    const double step = step_of(shape, p);
    const double products =
        number(ceil_div(blocks, places(shape, facts))) * (number(steps) * step + shape.end);
    const double memory = (number(p.m) + number(fp8_gemm_columns(p))) * number(p.k) / kBytes;
    const double near =
        number(blocks) * number(steps) * kFp8WgmmaTileK * number(shape.m + shape.n) / kNearBytes;
    const double longest = std::max({products, memory, near});
    return kStart + longest + kOverlap * (products + memory + near - longest);
}

bool exists(const Shape& shape, const Fp8GemmProblem& problem) {
    if (problem.scales == kBlockScales && shape.blocks == 0) return false;
    if (problem.groups > 0 && !shape.grouped) return false;
    Fp8WgmmaTiles layout = layout_of(shape, problem);
    layout.pieces = tile_of(shape, problem).pieces;
    return layout.why_not(promotes(problem), problem.scales)[0] == '\0';
}

// Splits without a share of K are none.
bool fits(const Shape& shape, const Fp8GemmProblem& p) {
    const std::int64_t k_tiles = ceil_div(p.k, kFp8WgmmaTileK);
    return (shape.splits - 1) * ceil_div(k_tiles, shape.splits) < k_tiles;
}

}  // namespace

std::vector<Fp8WgmmaTile> fp8_wgmma_tiles(const Fp8GemmProblem& problem) {
    std::vector<Fp8WgmmaTile> tiles;
    for (const Shape& shape : kShapes) {
        if (exists(shape, problem)) tiles.push_back(tile_of(shape, problem));
    }
    return tiles;
}

Fp8WgmmaTile fp8_wgmma_tile(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    const Shape* best = nullptr;
    double best_time = 0;
    for (const Shape& shape : kShapes) {
        if (!exists(shape, problem) || !fits(shape, problem)) continue;
        const double time = time_of(shape, problem, facts);
        if (best != nullptr && time >= best_time) continue;
        best = &shape;
        best_time = time;
    }
    return tile_of(*best, problem);
}

Spec fp8_wgmma_spec(const Fp8GemmProblem& problem, const Fp8WgmmaTile& tile,
                    const DeviceFacts& facts) {
    return spec_of(KernelId::fp8_gemm_wgmma, facts.arch,
                   {{"a", problem.a},
                    {"b", problem.b},
                    {"out", problem.out},
                    {"tile_m", tile.m},
                    {"tile_n", tile.n},
                    {"stages", tile.stages},
                    {"splits", tile.splits},
                    {"swap", tile.swap},
                    {"promote", promotes(problem)},
                    {"scales", problem.scales},
                    {"pieces", tile.pieces},
                    {"grouped", problem.groups > 0}});
}

int fp8_wgmma_threads(const Spec& spec) {
    const bool swap = value_of(spec, "swap") != 0;
    Fp8WgmmaTiles layout;
    layout.u = value_of(spec, swap ? "tile_n" : "tile_m");
    return layout.threads();
}

}  // namespace jitney::policy
