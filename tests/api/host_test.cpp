// Host tensors run on the reference backend.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/rotary.hpp"
#include "operations/rotary/reference.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::tests {

TEST_CASE("attention on host tensors is the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    AttentionLimits limits;
    limits.q_len = limits.kv_len = 20;
    limits.dtypes = {DType::bf16, DType::fp16, DType::fp32};
    for (int i = 0; i < 60; ++i) {
        AttentionProblem problem(random_attention_shape(random, limits), random,
                                 random_layout(random));
        CAPTURE(problem.shape.text());
        AttentionProblem expected = problem;
        attention(args_of(problem, kHost));
        CHECK(last_run() == "reference");
        reference::Attention call = expected.reference_call();
        // The public scale is an fp32.
        if (call.scale) call.scale = static_cast<double>(static_cast<float>(*call.scale));
        reference::attention(call);
        JITNEY_CHECK_CLOSE(problem.out, expected.out, Tolerance{});
        JITNEY_CHECK_CLOSE(problem.lse, expected.lse, Tolerance{});
        CHECK(problem.out.surroundings_intact());
    }
}

TEST_CASE("empty problems of attention compute nothing") {
    Random random(1);
    for (const auto& [batch, q_len] : {std::pair{0, 4}, std::pair{3, 0}}) {
        AttentionShape shape;
        shape.batch = batch;
        shape.q_len = q_len;
        shape.kv_len = 5;
        shape.head_dim = 8;
        AttentionProblem problem(shape, random);
        AttentionArgs args = args_of(problem, kHost);
        args.q.data = args.out.data = nullptr;  // an empty tensor needs no memory
        args.lse->data = nullptr;
        attention(args);
        CHECK(last_run().empty());
    }
}

TEST_CASE("strides of an empty tensor mean nothing, as others give them") {
    // numpy's are 0 in all dimensions.
    const auto without_strides = [](Tensor& tensor) { tensor.strides = {}; };
    Random random(1);
    AttentionShape shape;
    shape.batch = 0;
    shape.q_len = 3;
    shape.kv_len = 5;
    shape.head_dim = 8;
    AttentionProblem none(shape, random);
    AttentionArgs args = args_of(none, kHost);
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out, &*args.lse})
        without_strides(*tensor);
    attention(args);
    CHECK(last_run().empty());

    // Rows without keys are computed, on a GPU by the kernel that aligned tensors get.
    shape.batch = 2;
    shape.kv_len = 0;
    AttentionProblem problem(shape, random);
    args = args_of(problem, kHost);
    args.k.strides = {3, 3, 3, 3, 3};
    args.v.strides = {};
    attention(args);
    CHECK(last_run() == "reference");
    CHECK(problem.out.get(0) == 0.0);
    CHECK(problem.lse.get(0) == -HUGE_VAL);

    RotaryArgs rotary;
    rotary.q = rotary.q_out =
        Tensor::strided(nullptr, DType::fp32, {{0, 3, 2, 8}}, {{0, 0, 0, 0}}, {DeviceType::cpu, 0});
    HostTensor table(DType::fp32, {3, 4});
    rotary.cos = rotary.sin = table.view();
    rotary_emb(rotary);
    CHECK(last_run().empty());
}

TEST_CASE("without keys rows are 0 and LSE -inf") {
    Random random(1);
    AttentionShape shape;
    shape.q_len = 3;
    shape.kv_len = 0;
    shape.head_dim = 8;
    AttentionProblem problem(shape, random);
    AttentionArgs args = args_of(problem, kHost);
    args.k.data = args.v.data = nullptr;
    attention(args);
    CHECK(last_run() == "reference");
    for (std::int64_t i = 0; i < problem.out.elements(); ++i)
        CHECK(problem.out.get(i) == 0.0);
    for (std::int64_t i = 0; i < problem.lse.elements(); ++i)
        CHECK(problem.lse.get(i) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a failed call leaves no trace of the one before") {
    Random random(1);
    AttentionShape shape;
    shape.head_dim = 8;
    AttentionProblem problem(shape, random);
    attention(args_of(problem, kHost));
    CHECK(last_run() == "reference");
    AttentionArgs bad = args_of(problem, kHost);
    bad.scale = 0.0f;
    CHECK_THROWS(attention(bad));
    CHECK(last_run().empty());
}

TEST_CASE("an attention whose requests keep their results among others, on the host") {
    Random random(3);
    AttentionProblem problem(decode_shape(60), random);
    AttentionArgs args = args_of(problem, kHost);
    args.batch_invariant = true;
    attention(args);
    CHECK(last_run() == "reference");
}

TEST_CASE("rotary_emb on host tensors is the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const RotaryStyle style : {RotaryStyle::interleaved, RotaryStyle::half_split}) {
        HostTensor q(DType::bf16, {2, 3, 4, 16});
        HostTensor k(DType::bf16, {2, 3, 1, 16});
        q.fill_normal(random);
        k.fill_normal(random);
        HostTensor cos(DType::fp32, {9, 6});
        HostTensor sin = cos;
        for (std::int64_t i = 0; i < cos.elements(); ++i) {
            cos.set(i, std::cos(static_cast<double>(i)));
            sin.set(i, std::sin(static_cast<double>(i)));
        }
        HostTensor positions(DType::int64, {2, 3});
        positions.fill([](std::int64_t i) { return static_cast<double>(8 - i); });
        HostTensor q_out = q;
        HostTensor k_out = k;

        RotaryArgs args;
        args.q = args.q_out = q_out.view();
        args.k = args.k_out = k_out.view();
        args.cos = cos.view();
        args.sin = sin.view();
        args.positions = positions.view();
        args.style = style;
        rotary_emb(args);
        CHECK(last_run() == "reference");

        reference::Rotary call;
        call.q = call.q_out = q.view();
        call.k = call.k_out = k.view();
        call.cos = cos.view();
        call.sin = sin.view();
        call.positions = positions.view();
        call.style = style_as<reference::RotaryStyle>(style);
        reference::rotary(call);
        JITNEY_CHECK_CLOSE(q_out, q, Tolerance{});
        JITNEY_CHECK_CLOSE(k_out, k, Tolerance{});
    }
}

}  // namespace jitney::tests
