#include "policy/append_kv.hpp"

#include <algorithm>

#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

// The kernel counts the elements of a token in 32 bits, and looks a block past the last.
constexpr std::int64_t kMaxToken = 0x7fff0000;

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
    return p.tokens / tokens + (p.tokens % tokens != 0 ? 1 : 0);
}

}  // namespace

AppendKvChoice choose_append_kv(const AppendKvProblem& problem, const DeviceFacts& facts) {
    const int pairs = pairs_of(problem);
    const Items items = items_of(problem, pairs);
    AppendKvChoice choice;
    choice.spec.kernel = KernelId::append_kv;
    choice.spec.arch_number = facts.arch.number;
    choice.spec.arch_suffix = facts.arch.suffix;
    std::size_t slot = 0;
    const auto add = [&](int value) {
        choice.spec.values[slot++] = static_cast<std::int16_t>(value);
    };
    add(problem.format);
    add(pairs);
    add(problem.packed ? kPackedQueries : kDenseQueries);
    add(problem.paged ? kPagedKv : kDenseKv);
    add(static_cast<int>(problem.rotary));
    choice.k_items = items.k;
    choice.v_items = items.v;
    choice.q_items = items.q;
    choice.tokens_a_block = tokens_a_block(items.a_token(problem));
    choice.geometry.grid[0] = static_cast<unsigned>(blocks_of(problem));
    choice.geometry.block[0] = kAppendThreads;
    choice.geometry.shared_bytes = append_shared_bytes(choice.tokens_a_block);
    return choice;
}

Candidate rank_append_kv(const AppendKvProblem& problem, const DeviceFacts& facts) {
    const KernelInfo& kernel = info(KernelId::append_kv);
    const auto reject = [&kernel](Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
        return Candidate{kernel.id, reason, a, b};
    };
    if (facts.arch.number < kernel.minimum_arch) {
        return reject(Reason::arch_too_old, kernel.minimum_arch, facts.arch.number);
    }
    if (!takes_format(kernel, problem.format)) {
        return reject(Reason::format_unknown, problem.format);
    }
    if (elements_a_token(problem) > kMaxToken) {
        return reject(Reason::token_too_large, elements_a_token(problem), kMaxToken);
    }
    if (blocks_of(problem) > kMaxGrid) {
        return reject(Reason::grid_too_large, blocks_of(problem), kMaxGrid);
    }
    return Candidate{kernel.id};
}

std::vector<Spec> append_kv_catalogue(const AppendKvProblem& shape, const DeviceFacts& facts) {
    std::vector<Spec> specs;
    AppendKvProblem problem = shape;
    problem.tokens = 1;
    for (const bool aligned : {true, false}) {
        problem.aligned = aligned;
        if (!rank_append_kv(problem, facts).accepted()) continue;
        const Spec spec = choose_append_kv(problem, facts).spec;
        if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
    }
    return specs;
}

}  // namespace jitney::policy
