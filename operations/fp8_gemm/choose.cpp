#include "operations/fp8_gemm/choose.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/amax.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/gemm_params.h"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "operations/fp8_gemm/tile.hpp"
#include "operations/fp8_gemm/wgmma_tile.hpp"

namespace jitney::policy {
namespace {

// Blocks that run at the same time have square pieces of the output among them.
constexpr int kRowsAtATime = 2048;

// Tiles of so many rows: where rows belong to groups as many as there are at most, since each group
// may end in a tile of its own.
std::int64_t tiles_of_rows(const Fp8GemmProblem& problem, int tile_m) {
    const std::int64_t groups = std::min(problem.groups, problem.m);
    if (groups == 0) return ceil_div(problem.m, tile_m);
    return (problem.m + product(groups, tile_m - 1)) / tile_m;
}

}  // namespace

Fp8GemmChoice place_fp8_gemm(const Spec& spec, const Fp8GemmProblem& problem, int splits,
                             int group) {
    const int tile_m = value_of(spec, "tile_m");
    const int tile_n = value_of(spec, "tile_n");
    Fp8GemmChoice choice;
    choice.spec = spec;
    choice.m_tiles = static_cast<int>(tiles_of_rows(problem, tile_m));
    choice.n_tiles = static_cast<int>(ceil_div(problem.n, tile_n));
    choice.group = std::min(group, choice.m_tiles);
    const std::int64_t k_tiles = ceil_div(problem.k, fp8_gemm_tile_k(tile_m, tile_n));
    // As few splits as have that many tiles: none is left without.
    choice.split_tiles = static_cast<int>(ceil_div(k_tiles, splits));
    choice.splits = k_tiles == 0 ? 1 : static_cast<int>(ceil_div(k_tiles, choice.split_tiles));
    const auto tiles =
        static_cast<std::size_t>(choice.m_tiles) * static_cast<std::size_t>(choice.n_tiles);
    const auto blocks = tiles * static_cast<std::size_t>(choice.splits);
    choice.geometry.grid[0] = static_cast<unsigned>(blocks);
    choice.geometry.block[0] = static_cast<unsigned>(
        32 * fp8_gemm_warps(tile_m, tile_n, value_of(spec, "unpack") != 0).all());
    choice.geometry.shared_bytes = shared_bytes(spec);
    if (choice.splits > 1) {
        choice.workspace.partial_bytes =
            blocks * static_cast<std::size_t>(tile_m) * static_cast<std::size_t>(tile_n) * 4;
        choice.workspace.counter_bytes = tiles * 4;
    }
    if (problem.amax) choice.workspace.counter_bytes += sizeof(AmaxCounters);
    return choice;
}

Fp8GemmChoice place_fp8_gemm_wgmma(const Spec& spec, const Fp8GemmProblem& problem,
                                   const DeviceFacts& facts) {
    const int rows = value_of(spec, "tile_m");
    Fp8GemmChoice choice;
    choice.spec = spec;
    choice.m_tiles = static_cast<int>(tiles_of_rows(problem, rows));
    choice.n_tiles = static_cast<int>(ceil_div(problem.n, value_of(spec, "tile_n")));
    choice.group = std::clamp(kRowsAtATime / rows, 1, choice.m_tiles);
    choice.splits = value_of(spec, "splits");
    choice.split_tiles =
        static_cast<int>(ceil_div(ceil_div(problem.k, kFp8WgmmaTileK), choice.splits));
    // Blocks stay, and take tile after tile; those that share the K of a tile have but one.
    const std::int64_t tiles = product(choice.m_tiles, choice.n_tiles);
    const std::int64_t blocks =
        choice.splits > 1 ? tiles * choice.splits : std::min<std::int64_t>(tiles, facts.sm_count);
    choice.geometry.grid[0] = static_cast<unsigned>(blocks);
    choice.geometry.cluster[0] = static_cast<unsigned>(choice.splits);
    choice.geometry.block[0] = static_cast<unsigned>(fp8_wgmma_threads(spec));
    choice.geometry.shared_bytes = shared_bytes(spec);
    choice.geometry.programmatic = true;
    if (problem.amax) choice.workspace.counter_bytes = sizeof(AmaxCounters);
    return choice;
}

namespace {

Ranking<Fp8GemmChoice> rank_wgmma(const Fp8GemmProblem& p, const DeviceFacts& facts) {
    const KernelInfo& kernel = info(KernelId::fp8_gemm_wgmma);
    const auto reject = [&kernel](Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
        return Ranking<Fp8GemmChoice>{{{kernel.id, reason, a, b}}, std::nullopt};
    };
    if (!runs_on(kernel, facts.arch)) {
        return reject(Reason::other_arch, kernel.minimum_arch, facts.arch.number);
    }
    if (p.trans_a || !p.trans_b) return reject(Reason::not_along_k);
    if (p.k == 0) return reject(Reason::nothing_along_k);
    if (!p.aligned) return reject(Reason::rows_not_aligned);
    if (!p.mapped) return reject(Reason::not_mapped);
    const Fp8WgmmaTile tile = fp8_wgmma_tile(p, facts);
    const std::int64_t across = ceil_div(p.n, tile.n);
    const std::int64_t down = tiles_of_rows(p, tile.m);
    if (product(across, down) > kMaxTiles) return reject(Reason::too_many_tiles, across, down);
    return {{{kernel.id}}, place_fp8_gemm_wgmma(fp8_wgmma_spec(p, tile, facts), p, facts)};
}

// The time of each tile is worked out once.
Ranking<Fp8GemmChoice> rank_mma(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    const KernelInfo& kernel = info(KernelId::fp8_gemm_mma);
    const auto reject = [&kernel](Reason reason, std::int64_t a, std::int64_t b) {
        return Ranking<Fp8GemmChoice>{{{kernel.id, reason, a, b}}, std::nullopt};
    };
    if (facts.arch.number < kernel.minimum_arch) {
        return reject(Reason::no_fp8_tensor_cores, kernel.minimum_arch, facts.arch.number);
    }
    const Fp8GemmTile tile = fp8_gemm_tile(problem, facts);
    const std::int64_t across = ceil_div(problem.n, tile.n);
    const std::int64_t down = tiles_of_rows(problem, tile.m);
    if (product(across, down) > kMaxTiles) return reject(Reason::too_many_tiles, across, down);
    Fp8GemmChoice choice =
        place_fp8_gemm(fp8_gemm_spec(problem, tile, facts), problem, tile.splits, tile.group);
    choice.geometry.programmatic = fp8_gemm_begins_early(choice.spec, facts);
    return {{{kernel.id}}, choice};
}

}  // namespace

Ranking<Fp8GemmChoice> rank_fp8_gemm(const Fp8GemmProblem& problem, const DeviceFacts& facts,
                                     std::optional<KernelId> forced) {
    Ranking<Fp8GemmChoice> ranking;
    for (const KernelId kernel : {KernelId::fp8_gemm_wgmma, KernelId::fp8_gemm_mma}) {
        if (forced && *forced != kernel) {
            ranking.candidates.push_back({kernel, Reason::not_forced});
            continue;
        }
        Ranking<Fp8GemmChoice> one = kernel == KernelId::fp8_gemm_wgmma ? rank_wgmma(problem, facts)
                                                                        : rank_mma(problem, facts);
        ranking.candidates.push_back(one.candidates.front());
        if (!ranking.choice) ranking.choice = std::move(one.choice);
    }
    return ranking;
}

Fp8GemmWorkspace fp8_gemm_workspace_anywhere(const Fp8GemmProblem& problem,
                                             const DeviceFacts& facts) {
    Fp8GemmWorkspace most;
    for (const bool aligned : {false, true}) {
        Fp8GemmProblem placed = problem;
        placed.aligned = aligned;
        const auto choice = rank_fp8_gemm(placed, facts).choice;
        if (!choice) continue;
        const Fp8GemmWorkspace& needed = choice->workspace;
        most.partial_bytes = std::max(most.partial_bytes, needed.partial_bytes);
        most.counter_bytes = std::max(most.counter_bytes, needed.counter_bytes);
    }
    return most;
}

std::vector<Spec> fp8_gemm_catalogue(const Fp8GemmProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    const Candidate of_mma = rank_fp8_gemm(shape, facts, KernelId::fp8_gemm_mma).candidates.back();
    if (!of_mma.accepted()) return specs;
    Fp8GemmProblem problem = shape;
    if (runs_on(info(KernelId::fp8_gemm_wgmma), facts.arch) && !shape.trans_a && shape.trans_b) {
        for (const bool out_aligned : {true, false}) {
            problem.out_aligned = out_aligned;
            for (const Fp8WgmmaTile& tile : fp8_wgmma_tiles(problem))
                add_once(specs, fp8_wgmma_spec(problem, tile, facts));
        }
    }
    for (const bool aligned : {true, false}) {
        problem.aligned = aligned;
        for (const Fp8GemmTile& tile : fp8_gemm_tiles(problem, facts)) {
            specs.push_back(fp8_gemm_spec(problem, tile, facts));
        }
    }
    return specs;
}

}  // namespace jitney::policy
