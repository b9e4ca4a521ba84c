// Requests of several lengths, pages and options by the library's own checks, parameters and map of
// packed queries, on edge cases and on random problems.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "operations/attention/reference.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/kernels/serving_case.hpp"
#include "tests/emulator/seed.hpp"

namespace jitney::emulator {
namespace {

using policy::KernelId;
using tests::KeyForm;
using tests::ServingShape;

// No keys beside some, longer in queries than in keys, a page or a tile more or less, no request
// that has a query.
std::vector<ServingShape> edges(const Covered& covered) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    std::vector<ServingShape> all;
    const auto add = [&](std::vector<std::int64_t> q_lens, std::vector<std::int64_t> kv_lens,
                         std::int64_t group = 1) {
        const std::vector<KeyForm> choices = key_forms(covered);
        ServingShape shape;
        shape.q_lens = std::move(q_lens);
        shape.kv_lens = std::move(kv_lens);
        shape.packed = fixed.packed;
        shape.group = group;
        shape.keys = choices[all.size() % choices.size()];
        const bool wgmma = covered.attention->kernel == KernelId::attn_prefill_wgmma;
        if (shape.keys == KeyForm::dense) {
            shape.kv_lens.assign(shape.q_lens.size(), wgmma ? 300 : 65);
        }
        if (shape.keys == KeyForm::block_table) shape.page_size = 16;
        if (shape.keys == KeyForm::page_list) shape.page_size = 5;
        if (fixed.page_size != 1) {  // pages of which boxes of keys can be made
            const bool table = all.size() % 2 == 0;
            shape.keys = table ? KeyForm::block_table : KeyForm::page_list;
            shape.page_size = table ? 16 : 48;
        }
        all.push_back(std::move(shape));
    };
    if (fixed.packed) {
        add({0, 0}, {3, 0});
        add({1, 0, 64}, {64, 9, 65});
        add({70, 3}, {20, 0}, 2);
        add({0, 0, 9}, {0, 31, 33});
        add({129, 0, 5}, {40, 2, 70});
    } else if (is_decode(covered.attention->kernel)) {
        add({1, 1}, {0, 130}, 4);
        add({1, 1, 1}, {16, 17, 15}, 2);
        add({1}, {300}, 8);
        add({5, 5}, {3, 129});
        add({3, 3}, {80, 2}, 3);
        add({4}, {259}, 2);
    } else if (covered.attention->kernel == KernelId::attn_prefill_wgmma) {
        add({65, 65}, {0, 70});
        add({300}, {37});
        add({140, 140, 140}, {130, 257, 5}, 2);
        add({130, 130}, {128, 300}, 3);
        add({40}, {1}, 8);
        add({33, 33, 33}, {16, 400, 0}, 4);
    } else {
        add({65, 65}, {0, 70});
        add({100}, {37});
        add({33, 33, 33}, {16, 33, 5}, 2);
    }
    return all;
}

void run_line(const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    const bool decode = is_decode(covered.attention->kernel);
    const bool scalar = !is_mma(covered.attention->kernel);
    const bool wgmma = covered.attention->kernel == KernelId::attn_prefill_wgmma;
    int ran = 0;
    for (ServingShape& shape : edges(covered)) {
        fix(shape, covered, random);
        // So short, and without an end, that it alone tells which tiles of keys have to be masked.
        if (wgmma && fixed.window) {
            shape.window_left = static_cast<int>(random.integer(20, 100));
            shape.window_right = -1;
        }
        ran += run_serving(covered, shape, random, some_sms(covered, random)) ? 1 : 0;
    }
    CHECK_MESSAGE(ran >= 2, "the edge cases hardly ever ask for this specialization");

    const tests::ServingLimits limits = {.batch = decode ? 3 : 2,
                                         .q_len = decode ? 6 : (scalar ? 30 : (wgmma ? 200 : 80)),
                                         .kv_len = decode || wgmma ? 300 : 120,
                                         .keys = key_forms(covered)};
    const int wanted = problems_a_line(8);
    int tries = 0;
    for (ran = 0; ran < wanted && tries < 100 * wanted; ++tries) {
        ServingShape shape = tests::random_serving_shape(random, limits, fixed.packed);
        fix(shape, covered, random);
        ran += run_serving(covered, shape, random, some_sms(covered, random)) ? 1 : 0;
    }
    CHECK_MESSAGE(ran == wanted, "random problems hardly ever ask for this specialization");
}

void run_kernel_of(KernelId kernel) {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    for (const Covered& covered : covered_lines(kernel)) {
        // What is plain is in attention_test.cpp, but for lengths that are on the device.
        const bool mapped = kernel == KernelId::attn_prefill_wgmma;
        if (covered.attention->is_plain() && !mapped) continue;
        INFO(policy::text_of(covered.spec));
        run_line(covered, random);
    }
}

// The first heads' sinks are no numbers; the kernel agrees with the reference about every element
// that is none.
void run_odd_sinks(const Covered& covered, tests::Random& random) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const tests::ServingLimits limits = {
        .batch = 2, .q_len = 40, .kv_len = 300, .keys = key_forms(covered)};
    int ran = 0;
    for (int tries = 0; ran < 2 && tries < 2000; ++tries) {
        ServingShape shape =
            tests::random_serving_shape(random, limits, covered.attention->problem.packed);
        shape.group = random.integer(3, 8);
        fix(shape, covered, random);
        tests::ServingProblem problem(shape, random);
        const std::vector<double> sinks = {infinity, std::nan(""), -infinity};
        for (std::size_t i = 0; i < sinks.size(); ++i)
            problem.at("sinks").set(static_cast<std::int64_t>(i), sinks[i]);
        const auto run = run_serving(
            covered, problem, {.sm_count = some_sms(covered, random), .compare = false}, random);
        if (!run) continue;
        ++ran;
        reference::attention(
            tests::serving_call<reference::Attention>(shape, problem.views(tests::kHost)));
        const auto check = [](const tests::HostTensor& actual, const tests::HostTensor& expected) {
            for (std::int64_t i = 0; i < actual.elements(); ++i) {
                REQUIRE(std::isnan(actual.get(i)) == std::isnan(expected.get(i)));
                if (std::isnan(actual.get(i)) || actual.get(i) == expected.get(i)) continue;
                REQUIRE(std::abs(actual.get(i) - expected.get(i)) < 0.05);
            }
        };
        check(run->out, problem.at("out"));
        check(run->lse, problem.at("lse"));
    }
    CHECK_MESSAGE(ran == 2, "hardly any shape asks for ", policy::text_of(covered.spec));
}

}  // namespace

TEST_CASE("sinks that are no numbers, of requests") {
    tests::Random random(run_seed());
    for (const KernelId kernel : {KernelId::attn_decode_scalar, KernelId::attn_decode_mma,
                                  KernelId::attn_decode_cluster, KernelId::attn_prefill_scalar,
                                  KernelId::attn_prefill_mma, KernelId::attn_prefill_wgmma}) {
        for (const Covered& covered : covered_lines(kernel)) {
            if (!covered.attention->problem.sinks) continue;
            INFO(policy::text_of(covered.spec));
            run_odd_sinks(covered, random);
        }
    }
}

TEST_CASE("attn_decode_scalar of requests") {
    run_kernel_of(KernelId::attn_decode_scalar);
}

TEST_CASE("attn_decode_mma of requests") {
    run_kernel_of(KernelId::attn_decode_mma);
}

TEST_CASE("attn_decode_cluster of requests") {
    run_kernel_of(KernelId::attn_decode_cluster);
}

TEST_CASE("attn_prefill_scalar of requests") {
    run_kernel_of(KernelId::attn_prefill_scalar);
}

TEST_CASE("attn_prefill_wgmma of requests") {
    run_kernel_of(KernelId::attn_prefill_wgmma);
}

TEST_CASE("attn_prefill_mma of requests") {
    run_kernel_of(KernelId::attn_prefill_mma);
}

}  // namespace jitney::emulator
