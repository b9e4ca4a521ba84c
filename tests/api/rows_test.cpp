// rms_norm and gated_activation: on host tensors, to the launches of a driver that computes in
// software, and calls that are refused.
#include <cmath>
#include <limits>

#include "jitney/backend.hpp"
#include "jitney/gated_activation.hpp"
#include "jitney/rms_norm.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/row_problems.hpp"

namespace jitney::tests {
namespace {

View view_on(DeviceType type) {
    return [type](HostTensor& host) { return host.view({type, 0}); };
}

void run(const RmsNormArgs& args) {
    rms_norm(args);
}
void run(const GatedActivationArgs& args) {
    gated_activation(args);
}

// Of a problem whose results are in place, the inputs are gone when it has run.
template <class Args, class Problem>
void check_problem(Problem& problem, DeviceType type, const char* kernel) {
    CAPTURE(problem.test.text());
    Problem expected = problem;
    expected.run_reference();
    const Args args = problem.template call<Args>(view_on(type));
    run(args);
    if (type == DeviceType::cpu) {
        CHECK(last_run() == "reference");
    } else {
        CHECK(last_run() == explain(args).chosen);
        CHECK(last_run().starts_with(kernel));
    }
    const auto check_same = [](HostTensor& actual, const HostTensor& right) {
        CHECK(actual.surroundings_intact());
        for (std::int64_t i = 0; i < right.elements(); ++i)
            REQUIRE(actual.get(i) == right.get(i));
    };
    check_same(problem.place_of_out(), expected.out);
    if constexpr (requires { problem.sum; }) {
        if (problem.test.residual) check_same(problem.place_of_sum(), expected.sum);
    }
    if (problem.test.codes == RowCodes::scaled) check_same(problem.scale, expected.scale);
}

void check_random(Random& random, DeviceType type) {
    NormProblem norm(random_norm_case(random, 9, 300), random);
    check_problem<RmsNormArgs>(norm, type, "rms_norm<");
    GateProblem gate(random_gate_case(random, 9, 300), random);
    check_problem<GatedActivationArgs>(gate, type, "gated_activation<");
}

NormCase whole_norm() {
    NormCase test;
    test.residual = test.bias = true;
    return test;
}

}  // namespace

TEST_CASE("norms and gates of host tensors are the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 60; ++i)
        check_random(random, DeviceType::cpu);
}

TEST_CASE("scenario: norms and gates" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 80; ++i)
        check_random(random, DeviceType::cuda);

    NormProblem norm(whole_norm(), random);
    GateProblem gate(GateCase{}, random);
    auto norm_args = norm.call<RmsNormArgs>(view_on(DeviceType::cuda));
    auto gate_args = gate.call<GatedActivationArgs>(view_on(DeviceType::cuda));
    ops::rms_norm(norm_args);
    CHECK(last_run().starts_with("rms_norm<format=bf16,weight=bf16,width=8,"));
    ops::gated_activation(gate_args);
    CHECK(last_run().starts_with("gated_activation<format=bf16,activation=silu,width=8,"));
    run(norm_args);
    run(gate_args);
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) {
        run(norm_args);
        run(gate_args);
    }
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 200);

    // No rows: no launch.
    for (Tensor* tensor : {&norm_args.x, &*norm_args.residual, &*norm_args.sum, &norm_args.out,
                           &gate_args.gate, &gate_args.out})
        tensor->shape[0] = 0;
    run(norm_args);
    CHECK(last_run().empty());
    run(gate_args);
    CHECK(last_run().empty());
    CHECK(fake.launches == launches + 200);
}

TEST_CASE("norms and gates reach their kernels as they were meant") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: norms and gates", fake_gpu(cache)));
}

TEST_CASE("rows in the last of more dimensions are those of a matrix") {
    HostTensor x(DType::fp32, {2, 3, 16});
    HostTensor out(DType::fp32, {2, 3, 16});
    HostTensor scale(DType::fp32, {6});
    Random random(3);
    x.fill_normal(random);
    RmsNormArgs args;
    args.x = x.view();
    args.out = out.view();
    rms_norm(args);
    for (std::int64_t row = 0; row < 6; ++row) {
        double squares = 0.0;
        for (std::int64_t i = 0; i < 16; ++i)
            squares += out.get(16 * row + i) * out.get(16 * row + i);
        CHECK(std::abs(squares - 16.0) < 1e-3);
    }
    HostTensor codes(DType::fp8_e4m3, {2, 3, 16});
    args.out = codes.view();
    args.scale = scale.view();
    rms_norm(args);
    for (std::int64_t i = 0; i < codes.elements(); ++i) {
        const double value = codes.get(i) * scale.get(i / 16);
        CHECK(std::abs(value - out.get(i)) <= 0.07 * std::abs(out.get(i)) + 1e-3);
    }
}

TEST_CASE("calls of rms_norm that can't be meant") {
    Random random(1);
    NormProblem problem(whole_norm(), random);
    const auto good = problem.call<RmsNormArgs>(view_on(DeviceType::cpu));
    HostTensor number(DType::fp32, {1});
    HostTensor scales(DType::fp32, {5});
    number.set(0, 2.0);
    const Tensor multiplier = number.view();
    const Tensor scale = scales.view();
    using Bad = BadCall<RmsNormArgs>;
    const std::vector<Bad> bad = {
        {"integers", [](RmsNormArgs& a) { a.x.dtype = DType::int32; }, {"x", "int32"}},
        {"no data", [](RmsNormArgs& a) { a.x.data = nullptr; }, {"x", "no data"}},
        {"no columns",
         [](RmsNormArgs& a) { a.x.shape[1] = 0; },
         {"x has the shape [5, 0]", "from 1"}},
        {"eps below 0", [](RmsNormArgs& a) { a.eps = -1.0F; }, {"eps is -1", "1e-6"}},
        {"an eps of NaN", [](RmsNormArgs& a) { a.eps = std::nanf(""); }, {"eps is nan"}},
        {"a residual without its sum",
         [](RmsNormArgs& a) { a.sum.reset(); },
         {"residual was given without sum"}},
        {"a sum without a residual",
         [](RmsNormArgs& a) { a.residual.reset(); },
         {"sum was given without residual"}},
        {"1 + no weight",
         [](RmsNormArgs& a) {
             a.weight.reset();
             a.bias.reset();
             a.one_plus_weight = true;
         },
         {"one_plus_weight", "no weight"}},
        {"a bias without a weight", [](RmsNormArgs& a) { a.weight.reset(); }, {"bias", "weight"}},
        {"a bias of another dtype",
         [](RmsNormArgs& a) { a.bias->dtype = DType::fp16; },
         {"bias", "fp16", "bf16"}},
        {"a weight of another size",
         [](RmsNormArgs& a) { a.weight->shape[0] = 63; },
         {"weight", "[63]", "[64]"}},
        {"a residual of another shape",
         [](RmsNormArgs& a) { a.residual->shape[0] = 4; },
         {"residual", "[4, 64]", "[5, 64]"}},
        {"a residual of another dtype",
         [](RmsNormArgs& a) { a.residual->dtype = DType::fp16; },
         {"residual", "fp16", "bf16"}},
        {"out in another format",
         [](RmsNormArgs& a) { a.out.dtype = DType::fp16; },
         {"out has the dtype fp16", "bf16", "e4m3"}},
        {"out in E5M2",
         [&](RmsNormArgs& a) {
             a.out.dtype = DType::fp8_e5m2;
             a.multiplier = multiplier;
         },
         {"out has the dtype", "e5m2", "e4m3"}},
        {"codes with neither multiplier nor scale",
         [](RmsNormArgs& a) { a.out.dtype = DType::fp8_e4m3; },
         {"neither of multiplier and scale"}},
        {"codes with both",
         [&](RmsNormArgs& a) {
             a.out.dtype = DType::fp8_e4m3;
             a.multiplier = multiplier;
             a.scale = scale;
         },
         {"each of multiplier and scale"}},
        {"values with a multiplier",
         [&](RmsNormArgs& a) { a.multiplier = multiplier; },
         {"multiplier was given", "bf16"}},
        {"values with scales", [&](RmsNormArgs& a) { a.scale = scale; }, {"scale was given"}},
        {"too few scales",
         [&](RmsNormArgs& a) {
             a.out.dtype = DType::fp8_e4m3;
             a.scale = scale;
             a.scale->shape[0] = 4;
         },
         {"scale", "[4]", "[5]"}},
        {"a multiplier of two numbers",
         [&](RmsNormArgs& a) {
             a.out.dtype = DType::fp8_e4m3;
             a.multiplier = scale;
         },
         {"multiplier", "one number"}},
        {"rows that overlap", [](RmsNormArgs& a) { a.out.strides[0] = 32; }, {"out", "overlap"}},
        {"an innermost stride of 2", [](RmsNormArgs& a) { a.x.strides[1] = 2; }, {"x", "stride"}},
        {"another device",
         [](RmsNormArgs& a) {
             a.weight->device = {DeviceType::cuda, 0};
         },
         {"weight", "GPU 0", "host memory"}},
        {"out onto the residual",
         [](RmsNormArgs& a) { a.out.data = a.residual->data; },
         {"out", "residual"}},
        {"out onto the sum", [](RmsNormArgs& a) { a.out.data = a.sum->data; }, {"out", "sum"}},
        {"the sum onto x", [](RmsNormArgs& a) { a.sum->data = a.x.data; }, {"sum", "x"}},
        {"out a row behind x",
         [](RmsNormArgs& a) { a.out.data = static_cast<std::byte*>(a.x.data) + 128; },
         {"out", "x", "overlap"}},
        {"in place with other strides",
         [](RmsNormArgs& a) {
             a.out.data = a.x.data;
             a.out.strides[0] = 128;
         },
         {"out begins where x does", "apart"}},
        {"codes in place of values",
         [&](RmsNormArgs& a) {
             a.out = a.x;
             a.out.dtype = DType::fp8_e4m3;
             a.multiplier = multiplier;
         },
         {"out begins where x does", "e4m3", "bf16"}},
        {"scales onto the codes",
         [&](RmsNormArgs& a) {
             a.out.dtype = DType::fp8_e4m3;
             a.scale = scale;
             a.scale->data = a.out.data;
         },
         {"scale", "out", "overlap"}},
    };
    for (const Bad& each : bad)
        check_refused(each, good, [](const RmsNormArgs& args) { rms_norm(args); });
    rms_norm(good);
    RmsNormArgs in_place = good;
    in_place.out = in_place.x;
    in_place.sum = in_place.residual;
    rms_norm(in_place);
    CHECK(last_run() == "reference");
    CHECK_THROWS_AS(ops::rms_norm(good), Error);
}

TEST_CASE("calls of gated_activation that can't be meant") {
    Random random(1);
    GateCase test;
    test.two = true;
    GateProblem problem(test, random);
    const auto good = problem.call<GatedActivationArgs>(view_on(DeviceType::cpu));
    using Bad = BadCall<GatedActivationArgs>;
    const std::vector<Bad> bad = {
        {"integers",
         [](GatedActivationArgs& a) { a.gate.dtype = DType::int64; },
         {"gate", "int64"}},
        {"no activation",
         [](GatedActivationArgs& a) { a.activation = static_cast<Activation>(4); },
         {"activation is 4", "silu (0)", "relu2 (3)"}},
        {"an odd width without up",
         [](GatedActivationArgs& a) {
             a.up.reset();
             a.gate.shape[1] = 63;
         },
         {"gate has the shape [5, 63]", "even"}},
        {"half of the width in out",
         [](GatedActivationArgs& a) { a.up.reset(); },
         {"out", "[5, 64]", "[5, 32]"}},
        {"up of another shape",
         [](GatedActivationArgs& a) { a.up->shape[1] = 32; },
         {"up", "[5, 32]", "[5, 64]"}},
        {"up of another dtype",
         [](GatedActivationArgs& a) { a.up->dtype = DType::fp16; },
         {"up", "fp16", "bf16"}},
        {"no columns",
         [](GatedActivationArgs& a) { a.gate.shape[1] = a.up->shape[1] = a.out.shape[1] = 0; },
         {"gate has the shape [5, 0]", "from 1"}},
        {"out of another dtype",
         [](GatedActivationArgs& a) { a.out.dtype = DType::fp32; },
         {"out has the dtype fp32"}},
        {"out onto up", [](GatedActivationArgs& a) { a.out.data = a.up->data; }, {"out", "up"}},
        {"out onto both halves",
         [](GatedActivationArgs& a) {
             a.up.reset();
             reshape(a.gate, {2, 128});
             reshape(a.out, {2, 64});
             a.out.data = a.gate.data;
         },
         {"out begins where gate does"}},
        {"rows that overlap",
         [](GatedActivationArgs& a) { a.out.strides[0] = 32; },
         {"out", "overlap"}},
        {"another device",
         [](GatedActivationArgs& a) {
             a.up->device = {DeviceType::cuda, 0};
         },
         {"up", "GPU 0", "host memory"}},
    };
    for (const Bad& each : bad) {
        check_refused(each, good, [](const GatedActivationArgs& args) { gated_activation(args); });
    }
    gated_activation(good);
    GatedActivationArgs in_place = good;
    in_place.out = in_place.gate;
    gated_activation(in_place);
    CHECK(last_run() == "reference");
    CHECK_THROWS_AS(ops::gated_activation(good), Error);
}

}  // namespace jitney::tests
