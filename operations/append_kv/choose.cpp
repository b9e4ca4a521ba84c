#include "operations/append_kv/choose.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

std::int64_t elements_a_token(const AppendKvProblem& p) {
    return (2 * static_cast<std::int64_t>(p.kv_heads) + p.q_heads) * p.head_dim;
}

int bytes_of(const AppendKvProblem& p) {
    return p.format == kFp32 ? 4 : 2;
}

// 16-byte accesses, in either style and to what is only copied, or single pairs where something is
// in the way.
int pairs_of(const AppendKvProblem& p) {
    const int bytes = bytes_of(p);
    const int pairs = p.rotary == AppendRotary::half_split ? 16 / bytes : 8 / bytes;
    const bool fits = p.head_dim % append_copy_width(pairs, bytes) == 0 &&
                      (p.rotary == AppendRotary::none ||
                       (p.rotary_dim / 2 % pairs == 0 &&
                        (p.head_dim - p.rotary_dim) % rotary_copy_width(pairs) == 0));
    return fits && p.aligned ? pairs : 1;
}

struct Items {
    int k;
    int v;
    int q;

    int a_token(const AppendKvProblem& p) const { return p.kv_heads * (k + v) + p.q_heads * q; }
};

Items items_of(const AppendKvProblem& p, int pairs) {
    const int copies = p.head_dim / append_copy_width(pairs, bytes_of(p));
    if (p.rotary == AppendRotary::none) return {copies, copies, 0};
    const int written = p.q_in_place ? p.rotary_dim : p.head_dim;
    return {rotary_items(p.head_dim, p.rotary_dim, pairs), copies,
            rotary_items(written, p.rotary_dim, pairs)};
}

// Small tokens share a block, so that its threads have work.
int tokens_a_block(int items) {
    return std::max(1, kAppendThreads / std::max(items, 1));
}

std::int64_t blocks_of(const AppendKvProblem& p) {
    const int tokens = tokens_a_block(items_of(p, pairs_of(p)).a_token(p));
    return ceil_div(p.tokens, tokens);
}

AppendKvChoice choice_of(const AppendKvProblem& problem, const DeviceFacts& facts) {
    const int pairs = pairs_of(problem);
    const Items items = items_of(problem, pairs);
    AppendKvChoice choice;
    choice.spec = spec_of(KernelId::append_kv, facts.arch,
                          {{"format", problem.format},
                           {"pairs", pairs},
                           {"queries", problem.packed ? kPackedQueries : kDenseQueries},
                           {"kv", problem.paged ? kPagedKv : kDenseKv},
                           {"rotary", static_cast<int>(problem.rotary)}});
    choice.k_items = items.k;
    choice.v_items = items.v;
    choice.q_items = items.q;
    choice.tokens_a_block = tokens_a_block(items.a_token(problem));
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem));
    choice.geometry.block[0] = kAppendThreads;
    choice.geometry.shared_bytes = append_shared_bytes(choice.tokens_a_block);
    return choice;
}

Candidate judge(const AppendKvProblem& problem, const DeviceFacts& facts) {
    const Candidate candidate =
        judge_arch_and_format(KernelId::append_kv, facts.arch, problem.format);
    if (!candidate.accepted()) return candidate;
    const auto reject = [](Reason reason, std::int64_t a, std::int64_t b) {
        return Candidate{KernelId::append_kv, reason, a, b};
    };
    if (elements_a_token(problem) > kMaxToken) {
        return reject(Reason::token_too_large, elements_a_token(problem), kMaxToken);
    }
    if (blocks_of(problem) > kMaxGrid) {
        return reject(Reason::grid_too_large, blocks_of(problem), kMaxGrid);
    }
    return candidate;
}

}  // namespace

Ranking<AppendKvChoice> rank_append_kv(const AppendKvProblem& problem, const DeviceFacts& facts) {
    return ranking_of_one<AppendKvChoice>(judge(problem, facts),
                                          [&] { return choice_of(problem, facts); });
}

}  // namespace jitney::policy
