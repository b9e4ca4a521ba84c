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
    return rotary_items(written, p.rotary_dim, pairs);
}

// Where there are threads enough for all SMs, each takes its piece of several heads, twice as many
// as it holds at once: that is where memory was fastest. Else each has one, and is done the sooner.
int heads_at_once(const RotaryProblem& p, int pairs, int items, const DeviceFacts& facts) {
    constexpr std::int64_t kThreadsOfAnSm = 1024;
    const std::int64_t threads = product(p.tokens, std::int64_t{p.heads} * items);
    if (threads < kThreadsOfAnSm * facts.sm_count) return p.heads;
    const int bytes = p.format == kFp32 ? 4 : 2;
    return static_cast<int>(ceil_div(p.heads, 2 * rotary_heads_held(2 * pairs * bytes)));
}

RotaryChoice choice_of(const RotaryProblem& problem, const DeviceFacts& facts) {
    RotaryChoice choice;
    choice.pairs = pairs_of(problem);
    choice.spec =
        spec_of(KernelId::rotary_emb, facts.arch,
                {{"format", problem.format}, {"style", problem.style}, {"pairs", choice.pairs}});
    choice.items = items_of(problem, choice.pairs);
    choice.heads_at_once = heads_at_once(problem, choice.pairs, choice.items, facts);
    choice.threads_a_token = choice.items * choice.heads_at_once;
    // Small tokens share a block, so that its threads have work.
    choice.tokens_a_block = std::max(1, kRotaryThreads / std::max(choice.threads_a_token, 1));
    return choice;
}

std::int64_t blocks_of(const RotaryProblem& problem, const RotaryChoice& choice) {
    return ceil_div(problem.tokens, std::int64_t{choice.tokens_a_block});
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
    const std::int64_t blocks = blocks_of(problem, choice_of(problem, facts));
    if (blocks > kMaxGrid) return reject(Reason::grid_too_large, blocks, kMaxGrid);
    return candidate;
}

}  // namespace

Ranking<RotaryChoice> rank_rotary(const RotaryProblem& problem, const DeviceFacts& facts) {
    return ranking_of_one<RotaryChoice>(judge(problem, facts), [&] {
        RotaryChoice choice = choice_of(problem, facts);
        const std::int64_t blocks = blocks_of(problem, choice);
        choice.geometry.grid[0] = static_cast<unsigned>(blocks);
        choice.geometry.block[0] = kRotaryThreads;
        // Blocks that wait for the kernel before take the place of its own that have not begun:
        // only where they are few.
        choice.geometry.programmatic = has_programmatic_launches(facts) && blocks <= facts.sm_count;
        return choice;
    });
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
