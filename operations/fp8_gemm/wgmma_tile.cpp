#include "operations/fp8_gemm/wgmma_tile.hpp"

#include <algorithm>
#include <array>
#include <cmath>

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
constexpr std::array kShapes = {Shape{16, 64, true, 1, 8, 0, 0.105, 0.0836, 0.23, 0.112, true},
                                Shape{16, 64, true, 2, 8, 0, 0.173, 0.0789, 1.38, 0.112, false},
                                Shape{16, 64, true, 4, 8, 0, 0.107, 0.0963, 2.23, 0.095, false},
                                Shape{32, 64, true, 1, 8, 0, 0.132, 0.0876, 0.231, 0.13, true},
                                Shape{32, 64, true, 2, 8, 0, 0.207, 0.101, 0.719, 0.145, false},
                                Shape{32, 64, true, 4, 8, 0, 0.228, 0.0407, 2.73, 0, false},
                                Shape{64, 64, true, 1, 8, 0, 0.114, 0.14, 1.16, 0.144, true},
                                Shape{64, 64, true, 2, 8, 0, 0.212, 0.135, 1.74, 0.165, false},
                                Shape{64, 64, true, 4, 8, 0, 0.279, 0.0876, 2.43, 0, false},
                                Shape{96, 64, true, 1, 8, 0, 0.126, 0.114, 1.4, 0.19, false},
                                Shape{96, 64, true, 2, 8, 0, 0.25, 0.156, 2.32, 0.21, false},
                                Shape{128, 64, true, 2, 7, 0, 0.25, 0.228, 2.79, 0.28, false},
                                Shape{192, 64, true, 1, 5, 0, 0.194, 0.233, 2.93, 0, false},
                                Shape{192, 128, true, 1, 5, 0, 0.472, 0.513, 2.63, 0, false},
                                Shape{64, 64, false, 1, 8, 0, 0.174, 0.0824, 1.31, 0.138, false},
                                Shape{64, 128, false, 1, 8, 0, 0.227, 0.191, 0.333, 0.27, true},
                                Shape{64, 192, false, 1, 6, 0, 0.182, 0.34, 3.14, 0, false},
                                Shape{64, 256, false, 1, 5, 0, 0.26, 0.5, 2.64, 0, true},
                                Shape{128, 64, false, 1, 7, 2, 0.143, 0.153, 0.93, 0.25, false},
                                Shape{128, 96, false, 1, 7, 0, 0.195, 0.221, 3.26, 0, false},
                                Shape{128, 128, false, 1, 6, 2, 0.299, 0.3, 1.38, 0.41, true},
                                Shape{128, 144, false, 1, 6, 0, 0.325, 0.359, 4.63, 0, false},
                                Shape{128, 160, false, 1, 5, 0, 0.442, 0.441, 2.08, 0, false},
                                Shape{128, 192, false, 1, 4, 3, 0.459, 0.475, 1.62, 0, false},
                                Shape{128, 224, false, 1, 4, 0, 0.524, 0.609, 3.09, 0, false},
                                Shape{128, 256, false, 1, 4, 2, 0.622, 0.72, 2.08, 0.79, true}};

constexpr double kStart = 2.2;         // a launch, the first bytes from memory, the last to it
constexpr double kBytes = 4.22e6;      // a microsecond, from memory
constexpr double kNearBytes = 12.5e6;  // and from the L2, to all SMs
constexpr double kOverlap = 0.154;     // what does not overlap of all that should

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
    // Blocks that share a K do not stay: those of the next clusters take their places one by one.
    const double filled = number(blocks) / number(places(shape, facts));
    const double rounds = shape.splits > 1 ? std::max(filled, 1.0) : std::ceil(filled);
    const double products = rounds * (number(steps) * step + shape.end);
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
