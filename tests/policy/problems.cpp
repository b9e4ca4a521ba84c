#include "tests/policy/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernel_sources/common/constants.h"

namespace jitney::policy {

int random_count(tests::Random& random, int most) {
    const double value = std::exp2(random.uniform(0.0, std::log2(static_cast<double>(most) + 1)));
    return static_cast<int>(std::clamp(value, 1.0, static_cast<double>(most)));
}

DeviceFacts random_facts(tests::Random& random) {
    static constexpr std::array kArchs = {Arch{75, 0},   Arch{80, 0},  Arch{86, 0},  Arch{89, 0},
                                          Arch{90, 'a'}, Arch{100, 0}, Arch{103, 0}, Arch{120, 0}};
    DeviceFacts facts = typical_facts(random.pick(std::span<const Arch>(kArchs)));
    if (random.chance(0.5)) facts.sm_count = static_cast<int>(random.integer(1, 256));
    return facts;
}

AttentionProblem random_attention_shape(tests::Random& random) {
    static constexpr std::array kHeadDims = {8, 32, 40, 64, 72, 80, 96, 112, 128, 160, 192, 256};
    AttentionProblem shape;
    shape.format = static_cast<int>(random.integer(kFp32, kBf16));
    shape.kv_heads = random_count(random, 256);
    shape.q_heads = shape.kv_heads * random_count(random, 128);
    shape.head_dim = random.chance(0.5) ? random.pick(std::span<const int>(kHeadDims))
                                        : static_cast<int>(random.integer(1, 512));
    shape.causal = random.chance(0.5);
    shape.mask = random.chance(0.3);
    shape.aligned = random.chance(0.8);
    shape.packed = random.chance(0.3);
    shape.paged = random.chance(0.3);
    if (shape.paged) shape.page_size = random.integer(1, 300);
    shape.append = !shape.packed && random.chance(0.2);
    for (bool* option : {&shape.window, &shape.softcap, &shape.alibi, &shape.sinks})
        *option = random.chance(0.2);
    shape.batch_invariant = random.chance(0.3);
    return shape;
}

AttentionProblem random_attention(tests::Random& random) {
    AttentionProblem problem = random_attention_shape(random);
    const bool huge = random.chance(0.3);
    const int most = huge ? std::numeric_limits<int>::max() : 1 << 14;
    problem.batch = random_count(random, most);
    problem.q_len = random.chance(0.3) ? 1 : random_count(random, most);
    problem.kv_len = random.chance(0.1) ? 0 : random_count(random, most);
    if (huge) {
        problem.kv_heads = random_count(random);
        problem.q_heads = problem.kv_heads *
                          random_count(random, std::numeric_limits<int>::max() / problem.kv_heads);
    }
    if (problem.mask) {
        const auto size_or_1 = [&random](int size) { return random.chance(0.5) ? size : 1; };
        problem.mask_sizes = {size_or_1(problem.batch), size_or_1(problem.q_heads),
                              size_or_1(problem.q_len), problem.kv_len};
    }
    return problem;
}

RotaryProblem random_rotary(tests::Random& random) {
    RotaryProblem problem;
    problem.format = static_cast<int>(random.integer(kFp32, kBf16));
    problem.style = static_cast<int>(random.integer(kInterleaved, kHalfSplit));
    problem.tokens = random_count(random);
    if (random.chance(0.1)) problem.tokens *= random_count(random);
    problem.heads =
        random_count(random, random.chance(0.1) ? std::numeric_limits<int>::max() : 256);
    problem.head_dim = static_cast<int>(random.integer(2, 600));
    problem.rotary_dim = 2 * static_cast<int>(random.integer(1, problem.head_dim / 2));
    problem.in_place = random.chance(0.5);
    problem.aligned = random.chance(0.8);
    return problem;
}

std::string text_of(const AttentionProblem& p) {
    return fmt::format(
        "format {} batch {} q_len {} kv_len {} q_heads {} kv_heads {} head_dim {} causal {} mask "
        "{} "
        "aligned {} packed {} paged {} append {} window {} softcap {} alibi {} sinks {} "
        "batch_invariant {}",
        p.format, p.batch, p.q_len, p.kv_len, p.q_heads, p.kv_heads, p.head_dim, p.causal, p.mask,
        p.aligned, p.packed, p.paged, p.append, p.window, p.softcap, p.alibi, p.sinks,
        p.batch_invariant);
}

std::string text_of(const RotaryProblem& p) {
    return fmt::format(
        "format {} style {} tokens {} heads {} head_dim {} rotary_dim {} in_place {} aligned {}",
        p.format, p.style, p.tokens, p.heads, p.head_dim, p.rotary_dim, p.in_place, p.aligned);
}

std::string text_of(const DeviceFacts& facts) {
    return fmt::format("{} with {} SMs", facts.arch.text(), facts.sm_count);
}

}  // namespace jitney::policy
