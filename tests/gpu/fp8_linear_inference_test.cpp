// Linear layers whose weight is in FP8 already: on the GPU against sums in fp64.
#include <doctest/doctest.h>

#include "jitney/backend.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/plan.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/graph.hpp"
#include "tests/support/fp8_inference_problem.hpp"

namespace jitney::tests {
namespace {

struct OnGpu {
    explicit OnGpu(const Fp8InferenceProblem& p)
        : x(p.x),
          weight(p.weight),
          weight_scale(p.weight_scale),
          x_scale(p.x_scale),
          bias(p.bias),
          y(p.y) {}

    Fp8LinearInferenceArgs args(Fp8InferenceProblem& p) const {
        return p.args([&](const HostTensor& tensor) {
            if (&tensor == &p.x) return x.view();
            if (&tensor == &p.weight) return weight.view();
            if (&tensor == &p.weight_scale) return weight_scale.view();
            if (&tensor == &p.x_scale) return x_scale.view();
            return &tensor == &p.bias ? bias.view() : y.view();
        });
    }

    DeviceTensor x;
    DeviceTensor weight;
    DeviceTensor weight_scale;
    DeviceTensor x_scale;
    DeviceTensor bias;
    DeviceTensor y;
};

void check_case(const Fp8InferenceCase& test, Random& random) {
    Fp8InferenceProblem problem(test, random);
    INFO(test.text(), " ", random.text());
    const OnGpu tensors(problem);
    fp8_linear_inference(tensors.args(problem));
    CHECK(last_run().starts_with("fp8_gemm_"));
    problem.y = tensors.y.download();
    CHECK(problem.error(Fp8InferenceProblem::Sums::of_14_bits) <= 1.0);
    CHECK(problem.y.surroundings_intact());
}

}  // namespace

TEST_CASE("fp8_linear_inference: random layers") {
    Random random = Random::fresh();
    const int count = is_quick() ? 60 : 400;
    for (int i = 0; i < count; ++i)
        check_case(random_inference_case(random, 40, 500), random);
    MESSAGE(count, " layers, ", random.text());
}

TEST_CASE("fp8_linear_inference: the widths of models") {
    Random random = Random::fresh();
    for (const WeightScales scales :
         {WeightScales::one, WeightScales::column, WeightScales::blocks}) {
        for (const std::int64_t rows : {1, 16, 130}) {
            Fp8InferenceCase test;
            test.scales = scales;
            test.shape = {rows, 2048};
            test.out_features = 512;
            check_case(test, random);
            test.fast_accum = true;
            test.bias = true;
            check_case(test, random);
        }
    }
}

TEST_CASE("fp8_linear_inference: a plan, and a graph whose input changes") {
    if (!has_graphs()) return;
    Random random = Random::fresh();
    for (const WeightScales scales : {WeightScales::channels, WeightScales::blocks}) {
        Fp8InferenceCase test;
        test.scales = scales;
        test.shape = {16, 512};
        test.out_features = 256;
        Fp8InferenceProblem problem(test, random);
        OnGpu tensors(problem);
        Fp8LinearInferenceArgs args = tensors.args(problem);
        const DeviceBuffer memory(workspace_bytes(args));
        const TestStream stream;
        args.workspace = {memory.data(), workspace_bytes(args)};
        init_workspace(args.workspace, args.x.device, stream);
        const Plan<Fp8LinearInferenceArgs> plan(args);
        plan.run(args, stream);
        const Graph graph(stream, [&] { plan.run(args, stream); });
        for (int i = 0; i < 3; ++i) {
            problem.x.fill_normal(random, 3.0 * (i + 1));
            tensors.x.upload(problem.x);
            synchronize();
            graph.replay(stream);
            stream.synchronize();
            problem.y = tensors.y.download();
            CHECK(problem.error(Fp8InferenceProblem::Sums::of_14_bits) <= 1.0);
        }
    }
}

TEST_CASE("fp8_linear_inference under the sanitizer" * doctest::test_suite("sanitizer")) {
    Random random = Random::fresh();
    for (const WeightScales scales :
         {WeightScales::one, WeightScales::channels, WeightScales::blocks}) {
        for (const bool fixed : {false, true}) {
            Fp8InferenceCase test;
            test.scales = scales;
            test.fixed = fixed;
            test.shape = {33, 272};
            test.out_features = 144;
            check_case(test, random);
        }
    }
}

}  // namespace jitney::tests
