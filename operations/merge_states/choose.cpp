#include "operations/merge_states/choose.hpp"

#include "core/arithmetic.hpp"
#include "kernel_sources/attention/merge_states.h"

namespace jitney::policy {
namespace {

// Half of the lanes would be idle at four elements each where a head is small.
int width_of(const MergeStatesProblem& p) {
    const int wanted = p.head_dim <= 64 ? 2 : 4;
    return p.aligned && p.head_dim % wanted == 0 ? wanted : 1;
}

std::int64_t blocks_of(const MergeStatesProblem& p) {
    return ceil_div(p.rows, kMergeRows);
}

MergeStatesChoice choice_of(const MergeStatesProblem& problem, const DeviceFacts& facts) {
    MergeStatesChoice choice;
    choice.spec = spec_of(
        KernelId::attn_merge_states, facts.arch,
        {{"head_dim", problem.head_dim}, {"format", problem.format}, {"width", width_of(problem)}});
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem));
    choice.geometry.block[0] = kMergeThreads;
    return choice;
}

Candidate judge(const MergeStatesProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::attn_merge_states, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const auto reject = [](Reason reason, std::int64_t a, std::int64_t b) {
        return Candidate{KernelId::attn_merge_states, reason, a, b};
    };
    const Candidate of_size = judge_head_dim(KernelId::attn_merge_states, problem.head_dim);
    if (!of_size.accepted()) return of_size;
    if (blocks_of(problem) > kMaxGrid) {
        return reject(Reason::grid_too_large, blocks_of(problem), kMaxGrid);
    }
    return candidate;
}

}  // namespace

Ranking<MergeStatesChoice> rank_merge_states(const MergeStatesProblem& problem,
                                             const DeviceFacts& facts) {
    return ranking_of_one<MergeStatesChoice>(judge(problem, facts),
                                             [&] { return choice_of(problem, facts); });
}

}  // namespace jitney::policy
