// Lengths, head ratios, head dimensions and formats, each by every kernel that can run them.
#include <doctest/doctest.h>

#include <array>

#include "tests/gpu/attention_case.hpp"

namespace jitney::tests {
namespace {

struct Lengths {
    std::int64_t q;
    std::int64_t kv;
};

struct Heads {
    std::int64_t q;
    std::int64_t kv;
};

constexpr std::array kLengths = {
    Lengths{1, 1},       Lengths{64, 128},    Lengths{239, 1},    Lengths{799, 3},
    Lengths{113, 203},   Lengths{108, 256},   Lengths{384, 256},  Lengths{640, 128},
    Lengths{1023, 1024}, Lengths{1024, 1023}, Lengths{1, 3},      Lengths{2, 1},
    Lengths{511, 1},     Lengths{3, 513},     Lengths{1, 128},    Lengths{1, 339},
    Lengths{3, 799},     Lengths{64, 2048},   Lengths{16, 20000}, Lengths{2048, 3577},
    Lengths{4096, 4096}, Lengths{4224, 4224}};

// MHA, MQA, and groups of 4, 5, 7 and 3.
constexpr std::array kHeads = {Heads{2, 2}, Heads{6, 1},  Heads{8, 2},
                               Heads{5, 1}, Heads{14, 2}, Heads{9, 3}};

// NaN behind the last key, and between rows.
const Layout kPoisonedTails{{}, {0, 5, 0, 0}};

void add_by_kernel(std::vector<AttentionCase>& cases, AttentionCase test) {
    for (const std::string& kernel : kAttentionKernels) {
        test.kernel = kernel;
        if (can_run(test)) cases.push_back(test);
    }
}

AttentionShape shape_of(std::int64_t batch, Lengths lengths, Heads heads, std::int64_t head_dim,
                        DType dtype, bool causal) {
    AttentionShape shape;
    shape.batch = batch;
    shape.q_len = lengths.q;
    shape.kv_len = lengths.kv;
    shape.q_heads = heads.q;
    shape.kv_heads = heads.kv;
    shape.head_dim = head_dim;
    shape.dtype = dtype;
    shape.causal = causal;
    return shape;
}

}  // namespace

TEST_CASE("lengths and head ratios" * doctest::test_suite(kLong)) {
    std::vector<AttentionCase> cases;
    std::size_t turn = 0;
    for (const Lengths& lengths : kLengths) {
        const bool large = lengths.q * lengths.kv > 1500 * 1500;
        if (is_quick() && large) continue;
        for (const bool causal : {false, true}) {
            // The ratios take turns; the large problems get one.
            const std::size_t ratios = large || is_quick() ? 1 : 3;
            for (std::size_t i = 0; i < ratios; ++i) {
                const Heads heads = large ? Heads{2, 1} : kHeads[turn++ % kHeads.size()];
                const std::int64_t head_dim = turn % 2 == 0 ? 64 : 128;
                const DType dtype = turn % 3 == 0 ? DType::fp16 : DType::bf16;
                add_by_kernel(cases,
                              {shape_of(large ? 1 : 2, lengths, heads, head_dim, dtype, causal),
                               kPoisonedTails,
                               {}});
            }
        }
    }
    run_cases(cases);
}

TEST_CASE("every ratio of heads") {
    std::vector<AttentionCase> cases;
    for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 17, 32, 64}) {
        for (const std::int64_t q_len : {1, 5}) {
            add_by_kernel(cases, {shape_of(2, {q_len, 77}, {2 * group, 2}, 64, DType::bf16, true),
                                  kPoisonedTails,
                                  {}});
        }
    }
    run_cases(cases);
}

TEST_CASE("head dimensions that are multiples of 8" * doctest::test_suite(kLong)) {
    std::vector<AttentionCase> cases;
    for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8) {
        const bool sampled = head_dim == 8 || head_dim == 40 || head_dim == 64 || head_dim == 80 ||
                             head_dim == 136 || head_dim == 256;
        if (is_quick() && !sampled) continue;
        const DType dtype = head_dim % 16 == 0 ? DType::bf16 : DType::fp16;
        const bool causal = head_dim % 24 == 0;
        for (const std::int64_t q_len : {3, 70}) {
            add_by_kernel(
                cases,
                {shape_of(1, {q_len, 150}, {4, 2}, head_dim, dtype, causal), kPoisonedTails, {}});
        }
    }
    run_cases(cases);
}

TEST_CASE("odd and large head dimensions" * doctest::test_suite(kLong)) {
    std::vector<AttentionCase> cases;
    for (const std::int64_t head_dim :
         {1, 2, 7, 32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256, 264, 384, 511, 512}) {
        const bool sampled = head_dim == 1 || head_dim == 59 || head_dim == 111 || head_dim == 512;
        if (is_quick() && !sampled) continue;
        for (const std::int64_t q_len : {2, 33}) {
            AttentionCase test{
                shape_of(1, {q_len, 67}, {3, 1}, head_dim, DType::bf16, true), kPoisonedTails, {}};
            for (const char* kernel : {"attn_decode_scalar", "attn_prefill_scalar"}) {
                test.kernel = kernel;
                REQUIRE(can_run(test));
                cases.push_back(test);
            }
        }
    }
    run_cases(cases);
}

TEST_CASE("formats") {
    std::vector<AttentionCase> cases;
    for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
        for (const std::int64_t head_dim : {64, 128, 200}) {
            if (is_quick() && head_dim != 64) continue;
            for (const Lengths lengths : {Lengths{1, 300}, Lengths{100, 130}}) {
                add_by_kernel(
                    cases,
                    {shape_of(2, lengths, {6, 2}, head_dim, dtype, true), kPoisonedTails, {}});
            }
        }
    }
    run_cases(cases);
}

TEST_CASE("what the policy chooses") {
    std::vector<AttentionCase> cases;
    for (const std::int64_t batch : {1, 12}) {
        for (const std::int64_t q_len : {1, 2, 4, 8, 16, 17, 64, 65, 128, 577}) {
            for (const std::int64_t kv_len : {54, 512, 2048}) {
                if (is_quick() && (kv_len == 512 || q_len > 100)) continue;
                cases.push_back({shape_of(batch, {q_len, kv_len}, {8, 2}, 128, DType::bf16, true),
                                 kPoisonedTails,
                                 {}});
            }
        }
    }
    run_cases(cases);
}

}  // namespace jitney::tests
