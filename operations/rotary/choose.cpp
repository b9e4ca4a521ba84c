#include "operations/rotary/choose.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/rotary/params.h"

namespace jitney::policy {
namespace {

std::int64_t elements_a_token(const RotaryProblem& p) {
    return static_cast<std::int64_t>(p.heads) * p.head_dim;
}

// 16-byte accesses to x in either style, or single pairs where something is in the way.
int pairs_of(const RotaryProblem& p) {
    const int bytes = p.format == kFp32 ? 4 : 2;
    const int pairs = p.style == kInterleaved ? 8 / bytes : 16 / bytes;
    const int pairs_a_head = p.rotary_dim / 2;
    const bool fits = pairs_a_head % pairs == 0 &&
                      (p.in_place || (p.head_dim - p.rotary_dim) % rotary_copy_width(pairs) == 0);
    return fits && p.aligned ? pairs : 1;
}

int items_of(const RotaryProblem& p, int pairs) {
    const int written = p.in_place ? p.rotary_dim : p.head_dim;
    return p.heads * rotary_items(written, p.rotary_dim, pairs);
}

// Small tokens share a block, so that its threads have work.
int tokens_a_block(int items) {
    return std::max(1, kRotaryThreads / std::max(items, 1));
}

std::int64_t blocks_of(const RotaryProblem& p, int tokens_a_block) {
    return ceil_div(p.tokens, tokens_a_block);
}

RotaryChoice choice_of(const RotaryProblem& problem, const DeviceFacts& facts) {
    RotaryChoice choice;
    choice.pairs = pairs_of(problem);
    choice.spec =
        spec_of(KernelId::rotary_emb, facts.arch,
                {{"format", problem.format}, {"style", problem.style}, {"pairs", choice.pairs}});
    choice.items = items_of(problem, choice.pairs);
    choice.tokens_a_block = tokens_a_block(choice.items);
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem, choice.tokens_a_block));
    choice.geometry.block[0] = kRotaryThreads;
    return choice;
}

Candidate judge(const RotaryProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::rotary_emb, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const auto reject = [](Reason reason, std::int64_t a, std::int64_t b) {
        return Candidate{KernelId::rotary_emb, reason, a, b};
    };
    if (elements_a_token(problem) > kMaxToken) {
        return reject(Reason::token_too_large, elements_a_token(problem), kMaxToken);
    }
    const std::int64_t blocks =
        blocks_of(problem, tokens_a_block(items_of(problem, pairs_of(problem))));
    if (blocks > kMaxGrid) return reject(Reason::grid_too_large, blocks, kMaxGrid);
    return candidate;
}

}  // namespace

Ranking<RotaryChoice> rank_rotary(const RotaryProblem& problem, const DeviceFacts& facts) {
    return ranking_of_one<RotaryChoice>(judge(problem, facts),
                                        [&] { return choice_of(problem, facts); });
}

std::vector<Spec> rotary_catalogue(const RotaryProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    RotaryProblem problem = shape;
    problem.tokens = 1;
    for (const bool in_place : {false, true}) {
        problem.in_place = in_place;
        add_once(specs, rank_rotary(problem, facts).choice);
    }
    return specs;
}

}  // namespace jitney::policy
