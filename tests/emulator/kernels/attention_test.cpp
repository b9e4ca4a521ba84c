// Every attention specialization of covered.txt, on edge cases and on random problems.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "kernel_sources/attention/layout.h"
#include "kernel_sources/common/constants.h"
#include "policy/spec.hpp"
#include "tests/emulator/kernels/attention_case.hpp"
#include "tests/emulator/kernels/lines.hpp"

namespace jitney::emulator {
namespace {

using policy::KernelId;
using tests::AttentionShape;
using tests::MaskKind;

DType dtype_of(const policy::AttentionProblem& problem) {
    return problem.format == kBf16 ? DType::bf16
                                   : (problem.format == kFp16 ? DType::fp16 : DType::fp32);
}

bool is_decode(KernelId kernel) {
    return kernel == KernelId::attn_decode_mma || kernel == KernelId::attn_decode_scalar;
}

bool is_scalar(KernelId kernel) {
    return kernel == KernelId::attn_decode_scalar || kernel == KernelId::attn_prefill_scalar;
}

struct Lengths {
    std::int64_t q_len;
    std::int64_t kv_len;
    std::int64_t batch = 1;
    std::int64_t kv_heads = 1;
    std::int64_t group = 1;
};

// A tile more, less, or exactly; rows that see no key; no keys at all; heads that share keys.
std::vector<Lengths> edges(KernelId kernel) {
    if (is_decode(kernel)) {
        return {{1, 1},       {1, 33, 2},       {1, 128, 1, 2, 4}, {1, 129, 1, 1, 3},
                {1, 500},     {2, 31, 1, 1, 2}, {4, 300, 2, 1, 2}, {5, 3},
                {3, 0, 1, 2}, {16, 257},        {7, 260, 1, 1, 8}, {64, 65, 1, 1, 1}};
    }
    return {{1, 1},   {1, 70, 2, 1, 3},   {64, 64, 1, 2}, {65, 65},          {63, 129, 1, 1, 2},
            {130, 1}, {100, 37, 1, 1, 1}, {33, 0, 1, 2},  {5, 200, 2, 2, 8}, {128, 192}};
}

AttentionCase case_of(const Covered& covered, const Lengths& lengths) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    AttentionCase test;
    AttentionShape& shape = test.shape;
    shape.batch = lengths.batch;
    shape.q_len = lengths.q_len;
    shape.kv_len = lengths.kv_len;
    shape.kv_heads = lengths.kv_heads;
    shape.q_heads = lengths.kv_heads * lengths.group;
    shape.head_dim = fixed.head_dim;
    shape.dtype = dtype_of(fixed);
    shape.causal = fixed.causal;
    return test;
}

AttentionCase random_case(const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    const bool decode = is_decode(covered.attention->kernel);
    const bool scalar = is_scalar(covered.attention->kernel);
    AttentionCase test;
    test.shape = tests::random_attention_shape(random, {.batch = 2,
                                                        .q_len = decode ? 6 : (scalar ? 40 : 90),
                                                        .kv_len = decode ? 400 : 150,
                                                        .kv_heads = 2,
                                                        .group = 4,
                                                        .head_dims = {fixed.head_dim},
                                                        .dtypes = {dtype_of(fixed)},
                                                        .masks = false});
    test.shape.causal = fixed.causal;
    const bool unaligned = scalar && random.chance(0.5);
    if (unaligned) test.shift = random.integer(1, 3);
    for (tests::Layout* layout :
         {&test.layouts.q, &test.layouts.k, &test.layouts.v, &test.layouts.out}) {
        *layout = tests::random_layout(random);
        if (unaligned && !layout->padding.empty()) layout->padding[3] = random.integer(0, 5);
    }
    return test;
}

// What a case of this line needs beside its lengths.
void finish_case(const Covered& covered, AttentionCase& test, tests::Random& random) {
    test.rising = random.chance(0.4);
    if (covered.attention->problem.mask) {
        test.shape.mask = static_cast<MaskKind>(random.integer(1, 5));
    }
    // The keys are divided among more or fewer blocks.
    if (is_decode(covered.attention->kernel)) {
        test.sm_count = static_cast<int>(random.integer(1, 6) * random.integer(1, 6));
    }
}

// More parts of the keys than a warp has lanes to merge them with at once.
void run_many_splits(const Covered& covered, tests::Random& random) {
    const int warps = covered.attention->kernel == KernelId::attn_decode_mma ? kAttentionWarps : 1;
    const std::int64_t step = policy::value_of(covered.spec, "tile_n") * warps;
    AttentionCase test = case_of(covered, {covered.attention->problem.q_len, 40 * step + 5});
    finish_case(covered, test, random);
    test.sm_count = 1000;
    const std::optional<policy::AttentionChoice> choice = run_attention(covered, test, random);
    REQUIRE(choice);
    CHECK(choice->splits > 32);
}

void run_line(const Covered& covered, tests::Random& random) {
    int ran = 0;
    for (const Lengths& lengths : edges(covered.attention->kernel)) {
        AttentionCase test = case_of(covered, lengths);
        finish_case(covered, test, random);
        if (test.shape.mask != MaskKind::none && test.shape.kv_len == 0) continue;
        ran += run_attention(covered, test, random) ? 1 : 0;
    }
    if (is_decode(covered.attention->kernel)) run_many_splits(covered, random);
    CHECK_MESSAGE(ran >= 2, "the edge cases hardly ever ask for this specialization");

    const int wanted = problems_a_line(12);
    int tries = 0;
    for (ran = 0; ran < wanted && tries < 100 * wanted; ++tries) {
        AttentionCase test = random_case(covered, random);
        finish_case(covered, test, random);
        ran += run_attention(covered, test, random) ? 1 : 0;
    }
    CHECK_MESSAGE(ran == wanted, "random problems hardly ever ask for this specialization");
}

void run_kernel_of(KernelId kernel) {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    for (const Covered& covered : covered_lines(kernel)) {
        INFO(policy::text_of(covered.spec));
        REQUIRE(covered.attention);
        run_line(covered, random);
    }
}

}  // namespace

TEST_CASE("attn_decode_scalar") {
    run_kernel_of(KernelId::attn_decode_scalar);
}

TEST_CASE("attn_decode_mma") {
    run_kernel_of(KernelId::attn_decode_mma);
}

TEST_CASE("attn_prefill_scalar") {
    run_kernel_of(KernelId::attn_prefill_scalar);
}

TEST_CASE("attn_prefill_mma") {
    run_kernel_of(KernelId::attn_prefill_mma);
}

}  // namespace jitney::emulator
