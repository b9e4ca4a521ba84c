// Requests of several lengths, caches, pages, options and appended keys on the GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/prewarm.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {
namespace {

struct ServingCase {
    ServingShape shape;
    std::string kernel;  // forced by a scope; empty: the policy chooses
    bool host_lengths = false;
};

std::vector<int> host_indptr(const ServingShape& shape) {
    std::vector<int> ends{0};
    for (const std::int64_t length : shape.q_lens)
        ends.push_back(ends.back() + static_cast<int>(length));
    return ends;
}

AttentionArgs with_lengths(AttentionArgs args, const ServingCase& test,
                           const std::vector<int>& ends) {
    if (test.shape.packed && test.host_lengths) args.qo_indptr_host = ends;
    return args;
}

// What the case needs compiled; nothing where the forced kernel can't run it.
std::vector<std::string> specs_of(const ServingCase& test, Random& random) {
    ServingProblem problem(test.shape, random);
    const Views views = problem.views({DeviceType::cuda, 0});
    const std::vector<int> ends = host_indptr(test.shape);
    std::optional<Scope> scope;
    if (!test.kernel.empty()) scope.emplace(test.kernel);
    const Explanation explanation =
        explain(with_lengths(serving_call<AttentionArgs>(test.shape, views), test, ends));
    if (explanation.chosen.empty()) return {};
    std::vector<std::string> specs = explanation.before;
    specs.push_back(explanation.chosen);
    return specs;
}

void run_case(const ServingCase& test, Random& random) {
    INFO(test.kernel, " ", test.shape.text(), " ", random.text());
    ServingProblem problem(test.shape, random);
    const ServingDevice device(problem);
    const std::vector<int> ends = host_indptr(test.shape);
    {
        std::optional<Scope> scope;
        if (!test.kernel.empty()) scope.emplace(test.kernel);
        attention(with_lengths(device.args(test.shape), test, ends));
    }
    const std::string ran = last_run();
    INFO("ran ", ran);
    CHECK(ran.find('<') != std::string::npos);
    CHECK(ran.starts_with(test.kernel));
    device.check_against_reference(problem);
}

void run_cases(const std::vector<ServingCase>& cases, const std::vector<std::string>& specs,
               Random& random) {
    for (const PrewarmEntry& entry : prewarm(specs)) {
        CHECK_MESSAGE(entry.status != PrewarmStatus::failed, entry.error);
    }
    for (const ServingCase& test : cases)
        run_case(test, random);
    MESSAGE(cases.size(), " problems, ", random.text());
}

// The options come in a few sets, so that there are not as many kernels as problems.
ServingOptions options_of(std::int64_t set, bool packed) {
    switch (set) {
        case 1:
            return {.window = true, .sinks = true};
        case 2:
            return {.softcap = true};
        case 3:
            return {.alibi = true, .mask = true};
        case 4:
            return {.append = !packed};
        default:
            return {};
    }
}

}  // namespace

TEST_CASE("requests, pages and options by the chosen kernel, and by random kernels" *
          doctest::test_suite(kLong)) {
    Random random = Random::fresh();
    std::vector<ServingCase> cases;
    std::vector<std::string> specs;
    const std::size_t count = is_quick() ? 40 : 300;
    static constexpr std::int64_t kDims[] = {64, 128, 40, 256};
    const ServingLimits limits = {
        .batch = 6, .q_len = 200, .kv_len = 700, .group = 8, .page_sizes = {1, 3, 5, 8, 16, 64}};
    while (cases.size() < count) {
        const bool packed = random.chance(0.5);
        ServingCase test;
        test.shape = random_serving_shape(random, limits, packed);
        test.shape.head_dim = random.pick(std::span<const std::int64_t>(kDims));
        test.shape.dtype = random.chance(0.8) ? DType::bf16 : DType::fp16;
        test.shape.causal = random.chance(0.6);
        add_options(test.shape, options_of(random.integer(0, 4), packed), random);
        test.host_lengths = random.chance(0.5);
        if (random.chance(0.5)) test.kernel = random.pick<std::string>(kAttentionKernels);
        const std::vector<std::string> needed = specs_of(test, random);
        if (needed.empty()) continue;
        specs.insert(specs.end(), needed.begin(), needed.end());
        cases.push_back(std::move(test));
    }
    std::ranges::sort(specs);
    specs.erase(std::unique(specs.begin(), specs.end()), specs.end());
    run_cases(cases, specs, random);
}

TEST_CASE("a decode over many pages of every size, in every form, split and appended to") {
    Random random = Random::fresh();
    std::vector<ServingCase> cases;
    for (const KeyForm form : {KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}) {
        for (const std::int64_t page_size : {1, 5, 8, 16, 128}) {
            if (form == KeyForm::token_table && page_size != 1) continue;
            for (const std::int64_t new_len : {0, 1}) {
                ServingCase test;
                test.shape.head_dim = 128;
                test.shape.kv_heads = 2;
                test.shape.group = 4;
                test.shape.q_lens = {1, 1, 1};
                test.shape.kv_lens = {16384, 54 + new_len, 2047};
                test.shape.keys = form;
                test.shape.page_size = page_size;
                test.shape.new_len = new_len;
                cases.push_back(std::move(test));
            }
        }
    }
    run_cases(cases, {}, random);
}

}  // namespace jitney::tests
