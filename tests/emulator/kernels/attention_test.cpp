// Every attention specialization of covered.txt, on edge cases and on random problems.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "kernel_sources/attention/layout.h"
#include "kernel_sources/common/constants.h"
#include "policy/spec.hpp"
#include "tests/emulator/kernels/attention_case.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/kernels/requests_case.hpp"
#include "tests/emulator/seed.hpp"

namespace jitney::emulator {
namespace {

using policy::KernelId;
using tests::AttentionShape;
using tests::MaskKind;

DType dtype_of(const policy::AttentionProblem& problem) {
    return problem.format == kBf16 ? DType::bf16
                                   : (problem.format == kFp16 ? DType::fp16 : DType::fp32);
}

struct Lengths {
    std::int64_t q_len;
    std::int64_t kv_len;
    std::int64_t batch = 1;
    std::int64_t kv_heads = 1;
    std::int64_t group = 1;
};

// A tile more, less, or exactly; rows that see no key; no keys at all; heads that share keys.
// attn_prefill_wgmma has larger tiles, and blocks that take more than one.
std::vector<Lengths> edges(KernelId kernel) {
    if (kernel == KernelId::attn_prefill_wgmma) {
        return {{1, 1},
                {1, 70, 2, 1, 3},
                {128, 128, 1, 2},
                {129, 129},
                {63, 260, 1, 1, 2},
                {193, 1},
                {200, 37},
                {65, 0, 1, 2},
                {5, 200, 2, 2, 8},
                {192, 384},
                {450, 300, 1, 2},
                {70, 640, 2, 2},
                {20, 130, 1, 1, 12}};
    }
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
    const bool scalar = !is_mma(covered.attention->kernel);
    const bool wgmma = covered.attention->kernel == KernelId::attn_prefill_wgmma;
    AttentionCase test;
    test.shape = tests::random_attention_shape(random, {.batch = 2,
                                                        .q_len = decode   ? 6
                                                                 : scalar ? 40
                                                                 : wgmma  ? 260
                                                                          : 90,
                                                        .kv_len = decode || wgmma ? 400 : 150,
                                                        .kv_heads = 2,
                                                        .group = 4,
                                                        .head_dims = {fixed.head_dim},
                                                        .dtypes = {dtype_of(fixed)},
                                                        .masks = false});
    test.shape.causal = fixed.causal;
    const bool unaligned = scalar && random.chance(0.5);
    if (unaligned) test.shift = random.integer(1, 3);
    std::int64_t number = 0;
    for (tests::Layout* layout :
         {&test.layouts.out, &test.layouts.v, &test.layouts.q, &test.layouts.k}) {
        *layout = tests::set_apart(tests::random_layout(random), 4, number++);
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
    test.sm_count = some_sms(covered, random);
}

// More parts of the keys than a warp has lanes to merge them with at once.
void run_many_splits(const Covered& covered, tests::Random& random) {
    const int warps = is_mma(covered.attention->kernel) ? kAttentionWarps : 1;
    const std::int64_t step = policy::value_of(covered.spec, "tile_n") * warps;
    // Of fewer the blocks would form a cluster.
    const int steps = covered.attention->kernel == KernelId::attn_decode_cluster ? 80 : 40;
    AttentionCase test = case_of(covered, {covered.attention->problem.q_len, steps * step + 5});
    finish_case(covered, test, random);
    test.sm_count = 1000;
    const std::optional<policy::AttentionChoice> choice = run_attention(covered, test, random);
    REQUIRE(choice);
    CHECK(choice->splits > 32);
}

// Offsets that no 32 bits hold: of steps that do not fit themselves, and of many that do. A decode
// by the CUDA cores has a tile for up to 4, 8 and 16 rows, and each of them is asked for.
void run_far(const Covered& covered, tests::Random& random) {
    int ran = 0;
    const std::vector<Lengths> decode = {
        {1, 3, 2, 2, 2}, {2, 140, 2, 2, 2}, {4, 100, 2, 2, 2}, {16, 67, 2, 2, 1}};
    const std::vector<Lengths> prefill = {
        {3, 3, 2, 2, 2}, {66, 70, 2, 2, 2}, {40, 70, 2, 2, 2}, {130, 70, 2, 2, 1}};
    for (const Lengths& lengths : is_decode(covered.attention->kernel) ? decode : prefill) {
        AttentionCase test = case_of(covered, lengths);
        finish_case(covered, test, random);
        test.far = true;
        ran += run_attention(covered, test, random) ? 1 : 0;
    }
    CHECK_MESSAGE(ran >= 1, "tensors far apart never ask for this specialization");
}

void run_plain_line(const Covered& covered, tests::Random& random) {
    int ran = 0;
    run_far(covered, random);
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

RequestsShape random_requests(const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    const bool decode = is_decode(covered.attention->kernel);
    const std::int64_t longest = decode ? 300 : 150;
    RequestsShape shape;
    shape.kv_heads = random.integer(1, 2);
    shape.group = random.integer(1, 4);
    shape.head_dim = fixed.head_dim;
    shape.dtype = dtype_of(fixed);
    shape.causal = fixed.causal;
    shape.mask = fixed.mask;
    shape.packed = fixed.packed;
    shape.alibi = fixed.alibi;
    shape.sinks = fixed.sinks;
    if (fixed.softcap) shape.softcap = random.uniform(1.0, 20.0);
    if (fixed.append) shape.new_len = random.integer(1, 3);
    while (fixed.window && shape.window_left < 0 && shape.window_right < 0) {
        shape.window_left = random.chance(0.7) ? random.integer(0, 90) : -1;
        shape.window_right = random.chance(0.5) ? random.integer(0, 60) : -1;
    }
    if (fixed.paged) {
        shape.kv = static_cast<KvForm>(random.integer(static_cast<int>(KvForm::token_table),
                                                      static_cast<int>(KvForm::page_lists)));
        const std::int64_t sizes[] = {1, 3, 16, 24, 64};
        if (shape.kv != KvForm::token_table) shape.page_size = sizes[random.integer(0, 4)];
        if (random.chance(0.5)) shape.pool_order = tests::kBhld.order;
    } else {
        shape.kv = static_cast<KvForm>(random.integer(0, fixed.append ? 1 : 2));
    }
    const std::int64_t q_len = random.integer(1, decode ? 5 : 50);
    const std::int64_t kv_len = random.integer(shape.new_len, longest);
    for (std::int64_t i = random.integer(1, 4); i > 0; --i) {
        RequestLengths lengths = {q_len, kv_len};
        if (shape.packed) lengths.q_len = random.chance(0.2) ? 0 : random.integer(1, 50);
        if (shape.kv != KvForm::fixed) {
            lengths.kv_len =
                random.chance(0.15) ? shape.new_len : random.integer(shape.new_len, longest);
        }
        shape.requests.push_back(lengths);
    }
    return shape;
}

void run_random_requests(const Covered& covered, int wanted, tests::Random& random) {
    int ran = 0;
    for (int tries = 0; ran < wanted && tries < 200 * wanted; ++tries) {
        RequestsShape shape = random_requests(covered, random);
        if (shape.total_queries() == 0) continue;
        shape.far = ran % 4 == 3;
        ran += run_requests(covered, shape, some_sms(covered, random), random) ? 1 : 0;
    }
    CHECK_MESSAGE(ran == wanted, "random requests hardly ever ask for this specialization");
}

void run_kernel_of(KernelId kernel) {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(kernel)) {
        INFO(policy::text_of(covered.spec));
        REQUIRE(covered.attention);
        // Its maps are made from tensors: requests and options are in serving_test.cpp.
        if (kernel == KernelId::attn_prefill_wgmma) {
            if (covered.attention->is_plain()) run_plain_line(covered, random);
        } else if (covered.attention->is_plain()) {
            run_plain_line(covered, random);
            run_random_requests(covered, problems_a_line(4), random);
        } else {
            run_random_requests(covered, problems_a_line(16), random);
        }
    }
}

}  // namespace

TEST_CASE("attn_decode_scalar") {
    run_kernel_of(KernelId::attn_decode_scalar);
}

TEST_CASE("attn_decode_mma") {
    run_kernel_of(KernelId::attn_decode_mma);
}

TEST_CASE("attn_decode_cluster") {
    run_kernel_of(KernelId::attn_decode_cluster);
}

TEST_CASE("attn_prefill_scalar") {
    run_kernel_of(KernelId::attn_prefill_scalar);
}

TEST_CASE("attn_prefill_wgmma") {
    run_kernel_of(KernelId::attn_prefill_wgmma);
}

TEST_CASE("attn_prefill_mma") {
    run_kernel_of(KernelId::attn_prefill_mma);
}

}  // namespace jitney::emulator
