#include "operations/fp8_gemm/tile.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "core/arithmetic.hpp"
#include "kernel_sources/fp8/gemm_params.h"

namespace jitney::policy {
namespace {

// What the products of one block on an SM reach, and of as many as fit there, as a share of what
// its tensor cores could do: wide tiles use each fragment more often. Measured on an H200.
struct Shape {
    int m;
    int n;
    int stages;  // at most
    int blocks;  // that shall fit on an SM
    double alone;
    double full;
};
constexpr std::array kAligned = {
    Shape{16, 32, 16, 1, 0.28, 0.28},  Shape{16, 64, 5, 2, 0.17, 0.40},
    Shape{16, 128, 10, 1, 0.36, 0.36}, Shape{32, 32, 6, 1, 0.46, 0.46},
    Shape{32, 128, 8, 1, 0.55, 0.55},  Shape{64, 32, 8, 1, 0.57, 0.57},
    Shape{64, 64, 6, 2, 0.66, 0.70},   Shape{64, 128, 6, 1, 0.74, 0.74},
    Shape{128, 32, 5, 1, 0.66, 0.66},  Shape{128, 64, 4, 1, 0.73, 0.73},
    Shape{128, 128, 3, 2, 0.78, 0.85}};
// Through registers: a small tile leaves some for that.
constexpr std::array kUnaligned = {Shape{64, 64, 3, 2, 0.2, 0.2}};

constexpr int kMinStages = 3;

// With fewer rows the memory is what decides, wherever blocks are.
constexpr int kComputeRows = 32;

bool takes_fp8(const Arch& arch) {
    return arch.number == 89 || arch.number >= 120;
}

// The system's share of each resident block.
constexpr int kReserve = 1024;

int stage_bytes(const Shape& shape) {
    return fp8_gemm_stage_bytes(shape.m, shape.n);
}

// On devices with little shared memory a shape may be too large.
bool fits(const Shape& shape, const DeviceFacts& facts) {
    return kMinStages * stage_bytes(shape) <= facts.shared_bytes_per_block;
}

// As many as the shape asks for, where its blocks fit on an SM with them.
int stages_of(const Shape& shape, const DeviceFacts& facts) {
    const int room =
        std::min(facts.shared_bytes_per_sm / shape.blocks - kReserve, facts.shared_bytes_per_block);
    return std::clamp(room / stage_bytes(shape), kMinStages, shape.stages);
}

Fp8GemmTile tile_of(const Shape& shape, const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    Fp8GemmTile tile;
    tile.m = shape.m;
    tile.n = shape.n;
    tile.stages = stages_of(shape, facts);
    // Square pieces of the output at a time; larger ones where there are many, and the L2 is short.
    tile.group = ceil_div(problem.m, shape.m) >= 64 ? 16 : 8;
    return tile;
}

// A model of the time, in microseconds on an H200; only ratios matter.
constexpr double kStart = 3.3;        // a launch, the first bytes from memory, the last to it
constexpr double kEarly = 0.6;        // of which so much is hidden where blocks begin early
constexpr double kMacs = 2.14e6;      // products a microsecond on one SM
constexpr double kBytes = 4.5e6;      // a microsecond, from memory
constexpr double kNearBytes = 8.0e6;  // and from the L2, to all SMs
constexpr double kMerge = 1.0;        // splits leave their parts and meet
constexpr double kPartBytes = 2.5e6;  // of which so many a microsecond go and come
constexpr double kOverlap = 0.05;     // what does not overlap of all that should

// How many bytes those of an operand count for, where a tile's rows are pieces of the operand's:
// less than a line of memory at a time comes at the price of more.
double weight_of_pieces(bool transposed, int bytes) {
    if (!transposed || bytes >= 128) return 1.0;
    return bytes >= 64 ? 1.6 : 2.2;
}

double number(std::int64_t value) {
    return static_cast<double>(value);
}

// `early`: blocks of the shape begin before those ahead of them have ended.
double time_of(const Shape& shape, std::int64_t splits, bool early, const Fp8GemmProblem& p,
               const DeviceFacts& facts) {
    const std::int64_t tiles = product(fp8_gemm_row_tiles(p, shape.m), ceil_div(p.n, shape.n));
    const std::int64_t blocks = product(tiles, splits);
    const int tile_k = fp8_gemm_tile_k(shape.m, shape.n);
    const std::int64_t steps = ceil_div(ceil_div(p.k, tile_k), splits) * tile_k;
    const double area = number(std::int64_t{shape.m} * shape.n);
    const double rounds = number(ceil_div(blocks, facts.sm_count));
    const int shared = stages_of(shape, facts) * stage_bytes(shape) + kReserve;
    const bool alone = blocks <= facts.sm_count || 2 * shared > facts.shared_bytes_per_sm;
    const double products =
        rounds * area * number(steps) / (kMacs * (alone ? shape.alone : shape.full));
    const double memory = (number(p.m) + number(fp8_gemm_columns(p))) * number(p.k) / kBytes;
    const double row = shape.m * weight_of_pieces(p.trans_a, shape.m) +
                       shape.n * weight_of_pieces(!p.trans_b, shape.n);
    const double near =
        number(std::max<std::int64_t>(blocks, facts.sm_count)) * number(steps) * row / kNearBytes;
    double time =
        kStart + std::max({products, memory, near}) + kOverlap * (products + memory + near);
    if (early) time -= kEarly;
    if (splits > 1) time += kMerge + 2 * 4 * number(blocks) * area / kPartBytes;
    return time;
}

bool promotes(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    if (problem.scales == kBlockScales) return true;
    return takes_fp8(facts.arch) && !problem.fast_accum;
}

bool exists(const Shape& shape, const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    return fp8_gemm_why_not(shape.m, shape.n, !takes_fp8(facts.arch), promotes(problem, facts),
                            problem.scales)[0] == '\0';
}

template <class Body>
void for_each_shape(const Fp8GemmProblem& problem, const DeviceFacts& facts, const Body& body) {
    const std::span<const Shape> shapes =
        problem.aligned ? std::span<const Shape>(kAligned) : std::span<const Shape>(kUnaligned);
    for (const Shape& shape : shapes) {
        if (fits(shape, facts) && exists(shape, problem, facts)) body(shape);
    }
}

}  // namespace

std::vector<Fp8GemmTile> fp8_gemm_tiles(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    std::vector<Fp8GemmTile> tiles;
    for_each_shape(problem, facts,
                   [&](const Shape& shape) { tiles.push_back(tile_of(shape, problem, facts)); });
    return tiles;
}

Fp8GemmTile fp8_gemm_tile(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    Fp8GemmTile best;
    double best_time = 0;
    for_each_shape(problem, facts, [&](const Shape& shape) {
        const std::int64_t tiles =
            product(fp8_gemm_row_tiles(problem, shape.m), ceil_div(problem.n, shape.n));
        const std::int64_t k_tiles = ceil_div(problem.k, fp8_gemm_tile_k(shape.m, shape.n));
        const Fp8GemmTile tile = tile_of(shape, problem, facts);
        const bool early = fp8_gemm_begins_early(fp8_gemm_spec(problem, tile, facts), facts);
        for (const std::int64_t wanted : {1, 2, 3, 4, 6, 8}) {
            if (wanted > 1 &&
                (problem.groups > 0 || wanted > k_tiles / 2 || tiles > 2 * facts.sm_count))
                break;
            const double time = time_of(shape, wanted, early, problem, facts);
            if (best.m != 0 && time >= best_time) continue;
            best = tile;
            best.splits = static_cast<int>(wanted);
            best_time = time;
        }
    });
    return best;
}

bool fp8_gemm_begins_early(const Spec& spec, const DeviceFacts& facts) {
    if (!has_programmatic_launches(facts)) return false;
    const int tile_m = value_of(spec, "tile_m");
    if (tile_m < kComputeRows) return true;
    const bool unpack = value_of(spec, "unpack") != 0;
    const int by_registers = fp8_gemm_blocks_an_sm(tile_m, value_of(spec, "tile_n"), unpack, false);
    return by_registers == 1 || 2 * (shared_bytes(spec) + kReserve) > facts.shared_bytes_per_sm;
}

Spec fp8_gemm_spec(const Fp8GemmProblem& problem, const Fp8GemmTile& tile,
                   const DeviceFacts& facts) {
    return spec_of(KernelId::fp8_gemm_mma, facts.arch,
                   {{"a", problem.a},
                    {"b", problem.b},
                    {"out", problem.out},
                    {"tile_m", tile.m},
                    {"tile_n", tile.n},
                    {"stages", tile.stages},
                    {"trans_a", problem.trans_a},
                    {"trans_b", problem.trans_b},
                    {"unpack", !takes_fp8(facts.arch)},
                    {"promote", promotes(problem, facts)},
                    {"unaligned", !problem.aligned},
                    {"scales", problem.scales},
                    {"grouped", problem.groups > 0}});
}

}  // namespace jitney::policy
