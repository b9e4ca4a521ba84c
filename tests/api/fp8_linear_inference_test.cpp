// fp8_linear_inference: on the host against sums in fp64, bad calls, and from the arguments to the
// launches with a driver that computes in software.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/fp8_inference_problem.hpp"

namespace jitney::tests {
namespace {

constexpr auto kHostView = [](HostTensor& tensor) { return tensor.view(); };
constexpr auto kGpuView = [](HostTensor& tensor) { return on_gpu(tensor); };

constexpr std::array kAllScales = {WeightScales::one, WeightScales::channels, WeightScales::column,
                                   WeightScales::blocks};

using Bad = BadCall<Fp8LinearInferenceArgs>;

std::vector<Bad> bad_calls() {
    return {
        {"a weight that is not in FP8",
         [](auto& a) { a.weight.dtype = DType::bf16; },
         {"weight has the dtype bf16", "fp8_e4m3"}},
        {"x in FP8", [](auto& a) { a.x.dtype = DType::fp8_e4m3; }, {"x has the dtype fp8_e4m3"}},
        {"a weight of another width",
         [](auto& a) {
             reshape(a.weight, {24, 40});
         },
         {"weight has the shape [24, 40]", "[24, 48]"}},
        {"one scale too few",
         [](auto& a) { reshape(a.weight_scale, {23}); },
         {"weight_scale has the shape [23]", "[24, 1]", "[1, 1]"}},
        {"scales in a row",
         [](auto& a) {
             reshape(a.weight_scale, {1, 24});
         },
         {"weight_scale has the shape [1, 24]"}},
        {"scales of three dimensions",
         [](auto& a) {
             reshape(a.weight_scale, {24, 1, 1});
         },
         {"weight_scale has 3 dimensions"}},
        {"scales of bf16",
         [](auto& a) { a.weight_scale.dtype = DType::bf16; },
         {"weight_scale has the dtype bf16"}},
        {"scales elsewhere",
         [](auto& a) {
             a.weight_scale.device = {DeviceType::cuda, 7};
         },
         {"weight_scale", "GPU 7"}},
        {"null scales",
         [](auto& a) { a.weight_scale.data = nullptr; },
         {"weight_scale", "no data"}},
        {"a scale a row of x",
         [](auto& a) { reshape(*a.x_scale, {5}); },
         {"x_scale has the shape [5]", "one number"}},
        {"a bias of another size",
         [](auto& a) { reshape(*a.bias, {23}); },
         {"bias has the shape [23]", "[24]"}},
        {"a bias of fp16", [](auto& a) { a.bias->dtype = DType::fp16; }, {"bias", "bf16 or fp32"}},
        {"y of another shape",
         [](auto& a) {
             reshape(a.y, {5, 23});
         },
         {"y has the shape [5, 23]", "[5, 24]"}},
        {"y in FP8", [](auto& a) { a.y.dtype = DType::fp8_e4m3; }, {"y has the dtype fp8_e4m3"}},
        {"y in x", [](auto& a) { a.y.data = a.x.data; }, {"y begins where x does"}},
        {"y among the scales",
         [](auto& a) { a.weight_scale.data = static_cast<std::byte*>(a.y.data) + 4; },
         {"y overlaps weight_scale"}},
        {"null workspace", [](auto& a) { a.workspace.bytes = 512; }, {"workspace is null", "512"}},
    };
}

void check_all_refused(const Device& device) {
    Random random(3);
    Fp8InferenceCase test;
    test.bias = test.fixed = true;
    Fp8InferenceProblem problem(test, random);
    const auto args = problem.args([&](HostTensor& tensor) { return tensor.view(device); });
    for (const Bad& bad : bad_calls())
        check_refused(bad, args, [](const auto& call) { fp8_linear_inference(call); });
}

}  // namespace

TEST_CASE("a layer whose weight is in FP8 on the host: random layers against fp64") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 150; ++i) {
        Fp8InferenceProblem problem(random_inference_case(random, 20, 300), random);
        INFO(problem.test.text());
        fp8_linear_inference(problem.args(kHostView));
        CHECK(last_run() == "reference");
        CHECK(problem.error() <= 1.0);
        CHECK(problem.y.surroundings_intact());
    }
}

TEST_CASE("a layer whose weight is in FP8: scales of every kind and layout") {
    Random random(11);
    for (const WeightScales scales : kAllScales) {
        for (const bool fixed : {false, true}) {
            for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{300, 200},
                                          {128, 128},
                                          {128, 1},
                                          {129, 129},
                                          {1, 300}}) {
                Fp8InferenceCase test;
                test.scales = scales;
                test.fixed = fixed;
                test.shape = {7, in};
                test.out_features = out;
                test.out = DType::fp32;
                Fp8InferenceProblem problem(test, random);
                INFO(test.text());
                fp8_linear_inference(problem.args(kHostView));
                CHECK(problem.error() <= 1.0);
            }
        }
    }
}

TEST_CASE("a layer whose weight is in FP8, of nothing") {
    Random random(1);
    for (const WeightScales scales : kAllScales) {
        Fp8InferenceCase test;
        test.scales = scales;
        test.shape = {0, 48};
        Fp8InferenceProblem none(test, random);
        fp8_linear_inference(none.args(kHostView));
        CHECK(last_run().empty());
        // Nothing to add up: the bias.
        test.shape = {3, 0};
        test.bias = true;
        Fp8InferenceProblem empty(test, random);
        fp8_linear_inference(empty.args(kHostView));
        CHECK(empty.error() <= 1.0);
    }
}

TEST_CASE("bad calls of fp8_linear_inference are refused with a sentence") {
    check_all_refused({DeviceType::cpu, 0});
}

TEST_CASE("scenario: bad fp8_linear_inference" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all_refused({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("bad calls of fp8_linear_inference reach no GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad fp8_linear_inference", fake_gpu(cache)));
}

TEST_CASE("scenario: random fp8_linear_inference" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 100; ++i) {
        Fp8InferenceProblem problem(random_inference_case(random, 20, 300), random);
        INFO(problem.test.text());
        const Fp8LinearInferenceArgs args = problem.args(kGpuView);
        const int launches = fake.launches;
        fp8_linear_inference(args);
        CHECK(problem.error() <= 1.0);
        CHECK(problem.y.surroundings_intact());
        // A cast and a product, as explain tells them.
        CHECK(fake.launches == launches + 2);
        const ExplainedLaunches expected = explain(args);
        REQUIRE(expected.launches.size() == 2);
        CHECK(last_run() == expected.launches[1].spec);
        const bool blocks = problem.test.scales == WeightScales::blocks &&
                            (problem.test.out_features > 1 || problem.test.in_features() > 128);
        const char* const cast = problem.test.fixed ? "fp8_quantize<"
                                 : blocks           ? "fp8_quantize_groups<"
                                                    : "fp8_quantize_rows<";
        CHECK(expected.launches[0].spec.starts_with(cast));
        CHECK(workspace_bytes(args) > 0);
    }
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("what reaches the kernels of fp8_linear_inference means what the arguments mean") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random fp8_linear_inference", fake_gpu(cache)));
}

TEST_CASE("scenario: repeated fp8_linear_inference" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(5);
    Fp8InferenceCase test;
    test.shape = {7, 256};
    Fp8InferenceProblem problem(test, random);
    Fp8LinearInferenceArgs args = problem.args(kGpuView);
    alignas(256) static std::byte own[1 << 18];
    args.workspace = {own, workspace_bytes(args)};
    REQUIRE(args.workspace.bytes <= sizeof own);
    init_workspace(args.workspace);
    fp8_linear_inference(args);
    CHECK(problem.error() <= 1.0);
    const int allocations = fake.allocations;
    const long before = allocations_of_this_thread();
    fake.kernel = nullptr;
    for (int i = 0; i < 50; ++i)
        fp8_linear_inference(args);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.allocations == allocations);
    args.workspace.bytes -= 1;
    CHECK_THROWS_WITH_AS(fp8_linear_inference(args), doctest::Contains("workspace"), Error);
}

TEST_CASE("fp8_linear_inference in the caller's memory allocates nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: repeated fp8_linear_inference", fake_gpu(cache)));
}

}  // namespace jitney::tests
