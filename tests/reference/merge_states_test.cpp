// What merging means: attention over all keys, from attention over parts of them.
#include "operations/merge_states/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "jitney/error.hpp"
#include "operations/attention/reference.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/merge_problem.hpp"
#include "tests/support/problems.hpp"

namespace jitney::tests {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Keys [first, end) of [batch, kv_len, heads, head_dim].
Tensor keys_of(Tensor k, std::int64_t first, std::int64_t end) {
    k.data = static_cast<std::byte*>(k.data) + first * k.strides[1] * size_of(k.dtype);
    k.shape[1] = end - first;
    return k;
}

}  // namespace

TEST_CASE("merging attention over parts of the keys is attention over all") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 40; ++round) {
        AttentionLimits limits;
        limits.q_len = 6;
        limits.kv_len = 40;
        limits.head_dims = {8, 33};
        limits.dtypes = {DType::fp32};
        limits.masks = false;
        AttentionShape shape = random_attention_shape(random, limits);
        shape.causal = false;
        AttentionProblem problem(shape, random, random_layout(random));
        reference::Attention all = problem.reference_call();
        reference::attention(all);

        const auto parts = static_cast<std::int64_t>(random.integer(2, 5));
        HostTensor outs(DType::fp32,
                        {parts, shape.batch, shape.q_len, shape.q_heads, shape.head_dim});
        HostTensor lses(DType::fp32, {parts, shape.batch, shape.q_heads, shape.q_len});
        reference::MergeStates merge;
        for (std::int64_t i = 0; i < parts; ++i) {
            reference::Attention part = all;
            const std::int64_t first = shape.kv_len * i / parts;
            const std::int64_t end = shape.kv_len * (i + 1) / parts;
            part.k = keys_of(all.k, first, end);
            part.v = keys_of(all.v, first, end);
            const auto item = [i](Tensor tensor) {
                Tensor one = tensor;
                one.data = static_cast<std::byte*>(tensor.data) + i * tensor.strides[0] * 4;
                --one.ndim;
                for (std::size_t d = 0; d + 1 < Tensor::max_dims; ++d) {
                    one.shape[d] = tensor.shape[d + 1];
                    one.strides[d] = tensor.strides[d + 1];
                }
                return one;
            };
            part.out = item(outs.view());
            part.lse = item(lses.view());
            reference::attention(part);
            if (round % 2 == 0) merge.parts.push_back({part.out, *part.lse});
        }
        if (round % 2 != 0) merge.parts.push_back({outs.view(), lses.view()});
        HostTensor out(DType::fp32, problem.out.shape());
        HostTensor lse(DType::fp32, problem.lse.shape());
        merge.out = out.view();
        merge.lse = lse.view();
        reference::merge_states(merge);
        JITNEY_CHECK_CLOSE(out, problem.out, (Tolerance{1e-5, 1e-5}));
        JITNEY_CHECK_CLOSE(lse, problem.lse, (Tolerance{1e-5, 1e-5}));
    }
}

TEST_CASE("two empty results merge to an empty one, whatever their rows hold") {
    Random random(1);
    MergeProblem problem(MergeCase{}, random);
    for (HostTensor& lse : problem.part_lses)
        lse.fill([](std::int64_t) { return kNothing; });
    for (HostTensor& out : problem.part_outs)
        out.poison();
    problem.run_reference();
    for (std::int64_t i = 0; i < problem.out.elements(); ++i)
        REQUIRE(problem.out.get(i) == 0.0);
    for (std::int64_t i = 0; i < problem.lse.elements(); ++i)
        REQUIRE(problem.lse.get(i) == kNothing);
}

TEST_CASE("an LSE of +inf or NaN makes its row NaN, and no other") {
    Random random(1);
    for (const double lse : {-kNothing, std::nan("")}) {
        MergeProblem problem(MergeCase{}, random);
        problem.part_lses[1].fill([](std::int64_t i) { return static_cast<double>(i % 3); });
        problem.part_outs[1].fill([](std::int64_t) { return 2.0; });
        problem.part_lses[0].fill([&](std::int64_t i) { return i == 4 ? lse : kNothing; });
        problem.run_reference();
        for (std::int64_t i = 0; i < problem.lse.elements(); ++i) {
            CHECK(std::isnan(problem.lse.get(i)) == (i == 4));
            if (i != 4) CHECK(problem.lse.get(i) == static_cast<double>(i % 3));
        }
        // [batch, heads, q_len] beside [batch, q_len, heads, head_dim]: query 4 of the first head.
        for (std::int64_t d = 0; d < 64; ++d) {
            CHECK(std::isnan(problem.out.at({0, 4, 0, d})));
            CHECK(problem.out.at({0, 4, 1, d}) == 2.0);
        }
    }
}

TEST_CASE("merging refuses what does not fit") {
    Random random(1);
    MergeProblem problem(MergeCase{}, random);
    const auto call = [&](auto change) {
        reference::MergeStates merge;
        merge.parts = problem.parts<reference::MergeStates::Part>(
            [](HostTensor& tensor) { return tensor.view(); });
        merge.out = problem.out.view();
        merge.lse = problem.lse.view();
        change(merge);
        reference::merge_states(merge);
    };
    call([](reference::MergeStates&) {});
    CHECK_THROWS_AS(call([](reference::MergeStates& m) { m.parts.clear(); }), Error);
    CHECK_THROWS_AS(call([](reference::MergeStates& m) { m.parts[1].out.shape[3] = 1; }), Error);
    CHECK_THROWS_AS(call([](reference::MergeStates& m) { m.parts[1].lse.shape[2] = 1; }), Error);
    CHECK_THROWS_AS(call([](reference::MergeStates& m) { m.lse->dtype = DType::bf16; }), Error);
    CHECK_THROWS_AS(call([](reference::MergeStates& m) { m.out.ndim = 2; }), Error);
}

}  // namespace jitney::tests
