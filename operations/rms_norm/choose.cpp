#include "operations/rms_norm/choose.hpp"

#include "core/arithmetic.hpp"
#include "kernel_sources/norm/row_shape.h"
#include "policy/row_tile.hpp"

namespace jitney::policy {
namespace {

// Vectors of a row that a thread is to hold, of so many: with a residual one, whose loads are two
// and whose stores too; else enough for the barrier of a row to weigh little.
int wanted_vectors(const RmsNormProblem& p, int vectors) {
    constexpr int kMostOfTwo = 1024;
    if (p.residual) return 1;
    return vectors <= kMostOfTwo ? 2 : 4;
}
// More would not fit the registers of blocks of 1024 threads; single elements take less.
int most_vectors(int width) {
    return width == 1 ? 16 : 4;
}

struct Place {
    int width = 1;
    RowTile tile;
    std::int64_t blocks = 0;
};

Place place_of(const RmsNormProblem& p, const DeviceFacts& facts) {
    Place place;
    place.width = row_width(p.format, p.d, p.aligned);
    const int vectors = p.d / place.width;
    place.tile =
        tile_with_room(row_tile(vectors, wanted_vectors(p, vectors), most_vectors(place.width)),
                       place.width, p.result, facts);
    place.blocks = ceil_div(p.rows, rows_a_block(place.tile.threads));
    return place;
}

RmsNormChoice choice_of(const RmsNormProblem& problem, const DeviceFacts& facts) {
    const Place place = place_of(problem, facts);
    RmsNormChoice choice;
    choice.spec = spec_of(KernelId::rms_norm, facts.arch,
                          {{"format", problem.format},
                           {"weight", problem.weight},
                           {"result", problem.result},
                           {"width", place.width},
                           {"threads", place.tile.threads},
                           {"vectors", place.tile.vectors},
                           {"residual", problem.residual ? 1 : 0},
                           {"center", problem.center ? 1 : 0},
                           {"bias", problem.bias ? 1 : 0},
                           {"one_plus", problem.one_plus ? 1 : 0}});
    choice.geometry.grid[0] = static_cast<unsigned>(place.blocks);
    choice.geometry.block[0] = static_cast<unsigned>(row_block_threads(place.tile.threads));
    choice.geometry.shared_bytes =
        row_shared_bytes(place.tile.threads, place.tile.vectors, place.width, problem.result);
    choice.geometry.programmatic = has_programmatic_launches(facts);
    return choice;
}

Candidate judge(const RmsNormProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::rms_norm, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const std::int64_t blocks = place_of(problem, facts).blocks;
    if (blocks > kMaxGrid) {
        return Candidate{KernelId::rms_norm, Reason::grid_too_large, blocks, kMaxGrid};
    }
    return candidate;
}

}  // namespace

Ranking<RmsNormChoice> rank_rms_norm(const RmsNormProblem& problem, const DeviceFacts& facts) {
    return ranking_of_one<RmsNormChoice>(judge(problem, facts),
                                         [&] { return choice_of(problem, facts); });
}

}  // namespace jitney::policy
