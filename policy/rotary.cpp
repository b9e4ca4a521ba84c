#include "policy/rotary.hpp"

#include <algorithm>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/rotary/params.h"

namespace jitney::policy {
namespace {

// 16-byte accesses to x in either style, or single pairs where something is in the way.
int pairs_of(const RotaryProblem& p) {
    const int bytes = p.format == kFp32 ? 4 : 2;
    const int pairs = p.style == kInterleaved ? 8 / bytes : 16 / bytes;
    const int pairs_a_head = p.rotary_dim / 2;
    const bool fits = pairs_a_head % pairs == 0 &&
                      (p.in_place || (p.head_dim - p.rotary_dim) % rotary_copy_width(pairs) == 0);
    return fits && p.aligned ? pairs : 1;
}

}  // namespace

RotaryChoice choose_rotary(const RotaryProblem& problem, const DeviceFacts& facts) {
    RotaryChoice choice;
    choice.pairs = pairs_of(problem);
    choice.spec.kernel = KernelId::rotary_emb;
    choice.spec.arch_number = facts.arch.number;
    choice.spec.arch_suffix = facts.arch.suffix;
    choice.spec.values = {static_cast<std::int16_t>(problem.format),
                          static_cast<std::int16_t>(problem.style),
                          static_cast<std::int16_t>(choice.pairs)};
    const int written = problem.in_place ? problem.rotary_dim : problem.head_dim;
    choice.items = problem.heads * rotary_items(written, problem.rotary_dim, choice.pairs);
    // Small tokens share a block, so that its threads have work.
    choice.tokens_a_block = std::max(1, kRotaryThreads / std::max(choice.items, 1));
    choice.geometry.grid[0] =
        static_cast<unsigned>((problem.tokens + choice.tokens_a_block - 1) / choice.tokens_a_block);
    choice.geometry.block[0] = kRotaryThreads;
    return choice;
}

Candidate rank_rotary(const RotaryProblem&, const DeviceFacts& facts) {
    const int minimum = info(KernelId::rotary_emb).minimum_arch;
    if (facts.arch.number < minimum) {
        return {KernelId::rotary_emb, Reason::arch_too_old, minimum, facts.arch.number};
    }
    return {KernelId::rotary_emb};
}

std::vector<Spec> rotary_catalogue(const RotaryProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    RotaryProblem problem = shape;
    problem.tokens = 1;
    for (const bool aligned : {true, false}) {
        for (const bool in_place : {false, true}) {
            problem.aligned = aligned;
            problem.in_place = in_place;
            const Spec spec = choose_rotary(problem, facts).spec;
            if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
        }
    }
    return specs;
}

}  // namespace jitney::policy
