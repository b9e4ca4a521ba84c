#include "operations/gated_activation/choose.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/norm/row_shape.h"
#include "policy/row_tile.hpp"

namespace jitney::policy {
namespace {

// Vectors of a row that a thread keeps in shared memory.
constexpr int kWantedVectors = 4;
constexpr int kMostVectors = 16;
// Where no row makes a scale of its own, blocks of so many threads share a row.
constexpr int kPieceThreads = 256;

struct Place {
    int width = 1;
    RowTile tile;
    int pieces = 1;
    std::int64_t blocks = 0;
};

Place place_of(const GatedActivationProblem& p, const DeviceFacts& facts) {
    Place place;
    place.width = row_width(p.format, p.d, p.aligned);
    const int vectors = p.d / place.width;
    if (p.result == kRowScaledCodes) {
        place.tile = tile_with_room(row_tile(vectors, kWantedVectors, kMostVectors), place.width,
                                    p.result, facts);
    } else {
        place.tile = row_tile(std::min(vectors, kPieceThreads), 1, 1);
        place.pieces = static_cast<int>(ceil_div(vectors, place.tile.threads));
    }
    place.blocks = ceil_div(product(p.rows, place.pieces), rows_a_block(place.tile.threads));
    return place;
}

GatedActivationChoice choice_of(const GatedActivationProblem& problem, const DeviceFacts& facts) {
    const Place place = place_of(problem, facts);
    GatedActivationChoice choice;
    choice.spec = spec_of(KernelId::gated_activation, facts.arch,
                          {{"format", problem.format},
                           {"activation", problem.activation},
                           {"result", problem.result},
                           {"width", place.width},
                           {"threads", place.tile.threads},
                           {"vectors", place.tile.vectors}});
    choice.geometry.grid[0] = static_cast<unsigned>(place.blocks);
    choice.geometry.block[0] = static_cast<unsigned>(row_block_threads(place.tile.threads));
    choice.geometry.shared_bytes =
        row_shared_bytes(place.tile.threads, place.tile.vectors, place.width, problem.result);
    choice.geometry.programmatic = has_programmatic_launches(facts);
    choice.pieces = place.pieces;
    return choice;
}

Candidate judge(const GatedActivationProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::gated_activation, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const std::int64_t blocks = place_of(problem, facts).blocks;
    if (blocks > kMaxGrid) {
        return Candidate{KernelId::gated_activation, Reason::grid_too_large, blocks, kMaxGrid};
    }
    return candidate;
}

}  // namespace

Ranking<GatedActivationChoice> rank_gated_activation(const GatedActivationProblem& problem,
                                                     const DeviceFacts& facts) {
    return ranking_of_one<GatedActivationChoice>(judge(problem, facts),
                                                 [&] { return choice_of(problem, facts); });
}

}  // namespace jitney::policy
