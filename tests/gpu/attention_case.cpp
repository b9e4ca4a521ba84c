#include "tests/gpu/attention_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/prewarm.hpp"
#include "tests/support/compare.hpp"

namespace jitney::tests {
namespace {

Tolerance tolerance_for(DType dtype) {
    return dtype == DType::fp32 ? Tolerance{1e-4, 1e-4} : Tolerance{1e-2, 1e-2};
}

// The specialization that the case will run; empty where the forced kernel can't.
std::string spec_of(const AttentionCase& test) {
    const AttentionShape& s = test.shape;
    AttentionArgs args;
    const auto tensor = [&s](std::int64_t length, std::int64_t heads) {
        return Tensor::contiguous(nullptr, s.dtype, {s.batch, length, heads, s.head_dim});
    };
    args.q = tensor(s.q_len, s.q_heads);
    args.k = tensor(s.kv_len, s.kv_heads);
    args.v = args.k;
    args.out = args.q;
    args.causal = s.causal;
    if (s.mask != MaskKind::none) {
        args.mask = Tensor::contiguous(nullptr, DType::boolean, {s.batch, s.kv_len});
    }
    std::optional<Scope> scope;
    if (!test.kernel.empty()) scope.emplace(test.kernel);
    return explain(args).chosen;
}

AttentionProblem problem_of(const AttentionCase& test, Random& random) {
    const bool apart = !test.layout.order.empty() || !test.layout.padding.empty();
    AttentionProblem problem(test.shape, random,
                             apart ? AttentionLayouts::apart(test.layout) : AttentionLayouts());
    problem.spoil_unseen(random);
    return problem;
}

// The same problem for another kernel, or with another choice of results.
bool is_same(const AttentionCase& a, const AttentionCase& b) {
    return a.shape.text() == b.shape.text() && a.layout.order == b.layout.order &&
           a.layout.padding == b.layout.padding;
}

// Cases of one problem, of which the reference is computed once.
void run_same(std::span<const AttentionCase> cases, Random& random) {
    const AttentionProblem problem = problem_of(cases.front(), random);
    AttentionProblem expected = problem;
    reference::attention(expected.reference_call());
    for (const AttentionCase& test : cases) {
        INFO(test.text(), " ", random.text());
        const DeviceProblem device(problem);
        {
            std::optional<Scope> scope;
            if (!test.kernel.empty()) scope.emplace(test.kernel);
            attention(device.args(test.shape, test.lse));
        }
        const std::string ran = last_run();
        INFO("ran ", ran);
        CHECK(ran.find('<') != std::string::npos);
        CHECK(ran.starts_with(test.kernel));
        const HostTensor out = device.out.download();
        const HostTensor lse = device.lse.download();
        check_results(expected, out, test.lse ? &lse : nullptr);
    }
}

}  // namespace

std::string AttentionCase::text() const {
    std::string text = shape.text();
    if (!kernel.empty()) text = kernel + ": " + text;
    if (!layout.order.empty()) text += ", bhld";
    if (!layout.padding.empty()) text += ", padded";
    return text;
}

DeviceProblem::DeviceProblem(const AttentionProblem& problem, int device)
    : q(problem.q, device),
      k(problem.k, device),
      v(problem.v, device),
      out(problem.out, device),
      lse(problem.lse, device) {
    if (problem.mask) mask.emplace_back(*problem.mask, device);
}

AttentionArgs DeviceProblem::args(const AttentionShape& shape, bool want_lse) const {
    AttentionArgs args;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.out = out.view();
    if (!mask.empty()) args.mask = mask.front().view();
    args.causal = shape.causal;
    if (shape.scale) args.scale = static_cast<float>(*shape.scale);
    if (want_lse) args.lse = lse.view();
    return args;
}

bool can_run(const AttentionCase& test) {
    return test.kernel.empty() || !spec_of(test).empty();
}

bool can_run(const std::string& kernel, const AttentionArgs& args) {
    const Scope scope(kernel);
    return !explain(args).chosen.empty();
}

void prewarm_cases(const std::vector<AttentionCase>& cases) {
    std::set<std::string> specs;
    for (const AttentionCase& test : cases)
        specs.insert(spec_of(test));
    specs.erase("");
    const std::vector<std::string> list(specs.begin(), specs.end());
    for (const PrewarmEntry& entry : prewarm(list)) {
        CHECK_MESSAGE(entry.status != PrewarmStatus::failed, entry.error);
    }
}

void check_against_reference(AttentionProblem& problem, const HostTensor& out,
                             const HostTensor* lse) {
    reference::attention(problem.reference_call());
    check_results(problem, out, lse);
}

void check_results(const AttentionProblem& problem, const HostTensor& out, const HostTensor* lse) {
    CHECK_MESSAGE(out.surroundings_intact(), "something was written beside the rows of out");
    const Comparison compared = compare(out, problem.out, tolerance_for(problem.shape.dtype));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < tests::mean_limit_of(problem.out), compared.text);
    if (lse != nullptr) {
        CHECK_MESSAGE(lse->surroundings_intact(), "something was written beside lse");
        const Comparison sums = compare(*lse, problem.lse, {1e-3, 1e-4});
        CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
    }
}

void run_case(const AttentionCase& test, Random& random) {
    run_same(std::span(&test, 1), random);
}

void run_cases(const std::vector<AttentionCase>& cases) {
    prewarm_cases(cases);
    Random random = Random::fresh();
    for (auto first = cases.begin(); first != cases.end();) {
        const auto end = std::find_if(
            first, cases.end(), [&](const AttentionCase& test) { return !is_same(test, *first); });
        run_same({first, end}, random);
        first = end;
    }
    MESSAGE(cases.size(), " problems, ", random.text());
}

bool is_identical(const HostTensor& a, const HostTensor& b) {
    return std::ranges::equal(const_cast<HostTensor&>(a).storage(),
                              const_cast<HostTensor&>(b).storage());
}

}  // namespace jitney::tests
