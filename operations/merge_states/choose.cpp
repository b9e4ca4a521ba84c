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

}  // namespace

MergeStatesChoice choose_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts) {
    MergeStatesChoice choice;
    choice.spec = spec_of(
        KernelId::attn_merge_states, facts.arch,
        {{"head_dim", problem.head_dim}, {"format", problem.format}, {"width", width_of(problem)}});
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem));
    choice.geometry.block[0] = kMergeThreads;
    return choice;
}

Candidate rank_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts) {
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

std::vector<Spec> merge_states_catalogue(const MergeStatesProblem& shape,
                                         const DeviceFacts& facts) {
    std::vector<Spec> specs;
    MergeStatesProblem problem = shape;
    problem.rows = 1;
    for (const bool aligned : {true, false}) {
        problem.aligned = aligned;
        if (rank_merge_states(problem, facts).accepted()) {
            add_once(specs, choose_merge_states(problem, facts).spec);
        }
    }
    return specs;
}

}  // namespace jitney::policy
