#include "operations/fp8_gemm/choose.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/amax.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/gemm_params.h"
#include "operations/fp8_gemm/tile.hpp"

namespace jitney::policy {

Fp8GemmChoice place_fp8_gemm(const Spec& spec, const Fp8GemmProblem& problem, int splits,
                             int group) {
    const int tile_m = value_of(spec, "tile_m");
    const int tile_n = value_of(spec, "tile_n");
    Fp8GemmChoice choice;
    choice.spec = spec;
    choice.m_tiles = static_cast<int>(ceil_div(problem.m, tile_m));
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

// The time of each tile is worked out once.
Ranking<Fp8GemmChoice> rank_fp8_gemm(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    const KernelInfo& kernel = info(KernelId::fp8_gemm_mma);
    const auto reject = [&kernel](Reason reason, std::int64_t a, std::int64_t b) {
        return Ranking<Fp8GemmChoice>{{{kernel.id, reason, a, b}}, std::nullopt};
    };
    if (facts.arch.number < kernel.minimum_arch) {
        return reject(Reason::no_fp8_tensor_cores, kernel.minimum_arch, facts.arch.number);
    }
    const Fp8GemmTile tile = fp8_gemm_tile(problem, facts);
    const std::int64_t across = ceil_div(problem.n, tile.n);
    const std::int64_t down = ceil_div(problem.m, tile.m);
    if (product(across, down) > kMaxTiles) return reject(Reason::too_many_tiles, across, down);
    Fp8GemmChoice choice =
        place_fp8_gemm(fp8_gemm_spec(problem, tile, facts), problem, tile.splits, tile.group);
    choice.geometry.programmatic = fp8_gemm_begins_early(choice.spec, facts);
    return {{{kernel.id}}, choice};
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
    if (!rank_fp8_gemm(shape, facts).choice) return specs;
    for (const bool aligned : {true, false}) {
        Fp8GemmProblem problem = shape;
        problem.aligned = aligned;
        for (const Fp8GemmTile& tile : fp8_gemm_tiles(problem, facts)) {
            specs.push_back(fp8_gemm_spec(problem, tile, facts));
        }
    }
    return specs;
}

}  // namespace jitney::policy
