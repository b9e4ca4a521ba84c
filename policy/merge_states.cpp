#include "policy/merge_states.hpp"

#include <algorithm>

#include "kernel_sources/attention/merge_states.h"

namespace jitney::policy {
namespace {

constexpr int kMaxHeadDim = 512;

// Half of the lanes would be idle at four elements each where a head is small.
int width_of(const MergeStatesProblem& p) {
    const int wanted = p.head_dim <= 64 ? 2 : 4;
    return p.aligned && p.head_dim % wanted == 0 ? wanted : 1;
}

std::int64_t blocks_of(const MergeStatesProblem& p) {
    return p.rows / kMergeRows + (p.rows % kMergeRows != 0 ? 1 : 0);
}

}  // namespace

MergeStatesChoice choose_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts) {
    MergeStatesChoice choice;
    choice.spec.kernel = KernelId::attn_merge_states;
    choice.spec.arch_number = facts.arch.number;
    choice.spec.arch_suffix = facts.arch.suffix;
    choice.spec.values[0] = static_cast<std::int16_t>(problem.head_dim);
    choice.spec.values[1] = static_cast<std::int16_t>(problem.format);
    choice.spec.values[2] = static_cast<std::int16_t>(width_of(problem));
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem));
    choice.geometry.block[0] = kMergeThreads;
    return choice;
}

Candidate rank_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts) {
    const KernelInfo& kernel = info(KernelId::attn_merge_states);
    const auto reject = [&kernel](Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
        return Candidate{kernel.id, reason, a, b};
    };
    if (facts.arch.number < kernel.minimum_arch) {
        return reject(Reason::arch_too_old, kernel.minimum_arch, facts.arch.number);
    }
    if (!takes_format(kernel, problem.format)) {
        return reject(Reason::format_unknown, problem.format);
    }
    if (problem.head_dim > kMaxHeadDim) {
        return reject(Reason::head_dim_too_large, problem.head_dim, kMaxHeadDim);
    }
    if (blocks_of(problem) > kMaxGrid) {
        return reject(Reason::grid_too_large, blocks_of(problem), kMaxGrid);
    }
    return Candidate{kernel.id};
}

std::vector<Spec> merge_states_catalogue(const MergeStatesProblem& shape,
                                         const DeviceFacts& facts) {
    std::vector<Spec> specs;
    MergeStatesProblem problem = shape;
    problem.rows = 1;
    for (const bool aligned : {true, false}) {
        problem.aligned = aligned;
        if (!rank_merge_states(problem, facts).accepted()) continue;
        const Spec spec = choose_merge_states(problem, facts).spec;
        if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
    }
    return specs;
}

}  // namespace jitney::policy
