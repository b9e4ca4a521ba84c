// The linear layer on FP8: on the GPU as on the host.
#include "jitney/fp8_linear.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/plan.hpp"
#include "tests/gpu/child.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/graph.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/fp8_linear_problem.hpp"
#include "tests/support/fp8_quantize_problem.hpp"

namespace jitney::tests {
namespace {

Tensor host(HostTensor& tensor) {
    return tensor.view();
}

// The tensors of a layer on the GPU.
struct OnGpu {
    explicit OnGpu(const Fp8LinearProblem& p)
        : x(p.x),
          weight(p.weight),
          bias(p.bias),
          y(p.y),
          x_codes(p.x_codes),
          weight_codes(p.weight_codes),
          scales(p.scales),
          grad_y(p.grad_y),
          grad_x(p.grad_x),
          grad_weight(p.grad_weight),
          grad_bias(p.grad_bias),
          state(p.state) {}

    const DeviceTensor& of(const Fp8LinearProblem& p, const HostTensor& tensor) const {
        if (&tensor == &p.x) return x;
        if (&tensor == &p.weight) return weight;
        if (&tensor == &p.bias) return bias;
        if (&tensor == &p.y) return y;
        if (&tensor == &p.x_codes) return x_codes;
        if (&tensor == &p.weight_codes) return weight_codes;
        if (&tensor == &p.scales) return scales;
        if (&tensor == &p.grad_y) return grad_y;
        if (&tensor == &p.grad_x) return grad_x;
        if (&tensor == &p.grad_weight) return grad_weight;
        return &tensor == &p.grad_bias ? grad_bias : state;
    }

    DeviceTensor x;
    DeviceTensor weight;
    DeviceTensor bias;
    DeviceTensor y;
    DeviceTensor x_codes;
    DeviceTensor weight_codes;
    DeviceTensor scales;
    DeviceTensor grad_y;
    DeviceTensor grad_x;
    DeviceTensor grad_weight;
    DeviceTensor grad_bias;
    DeviceTensor state;
};

// Columns 0 to 2 and the history: the fourth is a number of the last call alone.
void check_states(const HostTensor& actual, const HostTensor& expected) {
    CHECK(differing(actual, expected) == 0);
}

void check_near(const HostTensor& actual, const HostTensor& expected, double absolute) {
    CHECK(actual.surroundings_intact());
    JITNEY_CHECK_CLOSE(actual, expected, (Tolerance{absolute, 1e-2}));
}

// Several steps of the same layer on both sides, with other data each.
void run_steps(const Fp8LinearCase& test, Random& random, int steps = 3) {
    INFO(test.rows, " x ", test.in, " to ", test.out, ", formats ",
         static_cast<int>(test.recipe.formats), ", scaling ", static_cast<int>(test.recipe.scaling),
         " ", random.text());
    Fp8LinearProblem problem(test);
    problem.fill(random);
    const OnGpu tensors(problem);
    const auto gpu = [&](HostTensor& tensor) { return tensors.of(problem, tensor).view(); };
    fp8_state_reset(problem.state.view());
    fp8_state_reset(tensors.state.view());
    check_states(tensors.state.download(), problem.state);
    for (int step = 0; step < steps; ++step) {
        problem.x.fill_normal(random, 1.0 + step);
        problem.grad_y.fill_normal(random, 0.01 * (step + 1));
        const_cast<DeviceTensor&>(tensors.x).upload(problem.x);
        const_cast<DeviceTensor&>(tensors.grad_y).upload(problem.grad_y);
        fp8_linear(problem.forward(gpu));
        CHECK(last_run().starts_with("fp8_gemm_"));
        fp8_linear_backward(problem.backward(gpu));
        fp8_linear(problem.forward(host));
        fp8_linear_backward(problem.backward(host));
        check_states(tensors.state.download(), problem.state);
        CHECK(differing(tensors.x_codes.download(), problem.x_codes) == 0);
        CHECK(differing(tensors.weight_codes.download(), problem.weight_codes) == 0);
        CHECK(differing(tensors.scales.download(), problem.scales) == 0);
        check_near(tensors.y.download(), problem.y, 2e-2);
        check_near(tensors.grad_x.download(), problem.grad_x, 1e-3);
        check_near(tensors.grad_weight.download(), problem.grad_weight, 1e-2);
        check_near(tensors.grad_bias.download(), problem.grad_bias, 1e-3);
    }
}

// A layer of random numbers, on the host and on the GPU.
struct Layer {
    Fp8LinearProblem problem = filled();
    OnGpu tensors{problem};
    TestStream stream;

    Tensor on_gpu(HostTensor& tensor) { return tensors.of(problem, tensor).view(); }

    static Fp8LinearProblem filled() {
        Random random = Random::fresh();
        Fp8LinearProblem made(Fp8LinearCase{});
        made.fill(random);
        made.grad_y.fill_normal(random, 1e-6);  // which a multiplier of 1 would make zeros
        return made;
    }
};

// Plans are captured at once, calls once they have run.
void check_steps_in_a_graph(bool own_memory, bool planned) {
    CAPTURE(own_memory);
    CAPTURE(planned);
    Layer layer;
    Fp8LinearProblem& problem = layer.problem;
    const OnGpu& tensors = layer.tensors;
    const TestStream& stream = layer.stream;
    const auto gpu = [&layer](HostTensor& tensor) { return layer.on_gpu(tensor); };
    fp8_state_reset(problem.state.view());
    fp8_state_reset(tensors.state.view(), stream);
    Fp8LinearArgs forward = problem.forward(gpu);
    Fp8LinearBackwardArgs backward = problem.backward(gpu);
    const std::size_t bytes = std::max(workspace_bytes(forward), workspace_bytes(backward));
    const DeviceBuffer memory(bytes);
    if (own_memory) {
        forward.workspace = backward.workspace = {memory.data(), bytes};
        init_workspace(forward.workspace, {}, stream);
    }
    const auto step = [&] {
        fp8_linear(forward, stream);
        fp8_linear_backward(backward, stream);
    };
    const Plan<Fp8LinearArgs> forward_plan(forward);
    const Plan<Fp8LinearBackwardArgs> backward_plan(backward);
    const auto planned_step = [&] {
        forward_plan.run(forward, stream);
        backward_plan.run(backward, stream);
    };
    if (!planned) step();
    const Graph graph(stream, [&] { planned ? planned_step() : step(); });
    // From a state without a history on: what its first step does, the device decides.
    fp8_state_reset(tensors.state.view(), stream);
    for (int i = 0; i < 4; ++i)
        graph.replay(stream);
    stream.synchronize();
    for (int i = 0; i < 4; ++i) {
        fp8_linear(problem.forward(host));
        fp8_linear_backward(problem.backward(host));
    }
    check_states(tensors.state.download(), problem.state);
    check_near(tensors.y.download(), problem.y, 2e-2);
    check_near(tensors.grad_weight.download(), problem.grad_weight, 1e-7);
}

}  // namespace

TEST_CASE("fp8_linear: every format and recipe, several steps" * doctest::test_suite(kLong)) {
    Random random = Random::fresh();
    for (const Fp8Formats formats : {Fp8Formats::e4m3, Fp8Formats::e5m2, Fp8Formats::hybrid}) {
        for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::dynamic}) {
            for (const Fp8Amax amax : {Fp8Amax::window, Fp8Amax::latest}) {
                Fp8LinearCase test;
                test.recipe.formats = formats;
                test.recipe.scaling = scaling;
                test.recipe.amax = amax;
                test.recipe.history = 2;
                test.recipe.margin = 1;
                run_steps(test, random);
            }
        }
    }
}

TEST_CASE("fp8_linear: the largest margins, and numbers of any size, make no NaN") {
    for (const Fp8Formats formats : {Fp8Formats::e5m2, Fp8Formats::hybrid}) {
        for (const double amax : {1e-42, 1e-20, 1000.0, 3e38}) {
            CAPTURE(static_cast<int>(formats));
            CAPTURE(amax);
            Fp8LinearCase test;
            test.dtype = DType::fp32;
            test.recipe.formats = formats;
            test.recipe.margin = formats == Fp8Formats::e5m2 ? 32 : 18;
            test.recipe.history = 1;
            Fp8LinearProblem problem(test);
            for (HostTensor* tensor : {&problem.x, &problem.weight, &problem.grad_y})
                tensor->fill([&](std::int64_t i) { return i % 5 == 0 ? amax : 0.0; });
            problem.bias.fill([](std::int64_t i) { return static_cast<double>(i % 3) - 1.0; });
            const OnGpu tensors(problem);
            const auto gpu = [&](HostTensor& tensor) { return tensors.of(problem, tensor).view(); };
            fp8_state_reset(problem.state.view());
            fp8_state_reset(tensors.state.view());
            for (int step = 0; step < 2; ++step) {
                fp8_linear(problem.forward(gpu));
                fp8_linear_backward(problem.backward(gpu));
                fp8_linear(problem.forward(host));
                fp8_linear_backward(problem.backward(host));
            }
            check_states(tensors.state.download(), problem.state);
            CHECK(differing(tensors.x_codes.download(), problem.x_codes) == 0);
            const HostTensor y = tensors.y.download();
            for (std::int64_t i = 0; i < y.elements(); ++i) {
                CHECK_FALSE(std::isnan(y.get(i)));
                CHECK_FALSE(std::isnan(problem.y.get(i)));
            }
        }
    }
}

TEST_CASE("fp8_linear: shapes, one row, no features, and hidden sizes of odd length") {
    Random random = Random::fresh();
    for (const auto& [rows, in, out] : std::vector<std::array<std::int64_t, 3>>{{1, 16, 16},
                                                                                {5, 0, 17},
                                                                                {1, 1025, 17},
                                                                                {7, 17, 1025},
                                                                                {33, 513, 255},
                                                                                {64, 128, 5137},
                                                                                {1000, 64, 96}}) {
        Fp8LinearCase test;
        test.rows = rows;
        test.in = in;
        test.out = out;
        test.dtype = rows == 7 ? DType::fp16 : DType::bf16;
        test.bias = in != 64;
        run_steps(test, random, 2);
    }
}

TEST_CASE("fp8_linear: a state without a history takes its first scales from the tensors") {
    Random random = Random::fresh();
    for (const double size : {1e-12, 1e-6, 1e6, 0.0}) {
        for (const std::int64_t rows : {24, 5000}) {  // of one tile, and of several a block
            CAPTURE(size);
            Fp8LinearCase test;
            test.rows = rows;
            test.in = rows == 24 ? 40 : 1024;
            Fp8LinearProblem problem(test);
            problem.fill(random);
            problem.x.fill_normal(random, size);
            problem.grad_y.fill_normal(random, size);
            const OnGpu tensors(problem);
            const auto gpu = [&](HostTensor& tensor) { return tensors.of(problem, tensor).view(); };
            problem.state.fill([](std::int64_t) { return 0.0; });
            const_cast<DeviceTensor&>(tensors.state).upload(problem.state);
            for (int step = 0; step < 2; ++step) {
                fp8_linear(problem.forward(gpu));
                fp8_linear_backward(problem.backward(gpu));
                fp8_linear(problem.forward(host));
                fp8_linear_backward(problem.backward(host));
                check_states(tensors.state.download(), problem.state);
                CHECK(differing(tensors.x_codes.download(), problem.x_codes) == 0);
                CHECK(differing(tensors.weight_codes.download(), problem.weight_codes) == 0);
                CHECK(differing(tensors.scales.download(), problem.scales) == 0);
            }
        }
    }
}

TEST_CASE("fp8_linear: a call without results saves the scales of its state") {
    for (const bool rows : {false, true}) {
        Fp8LinearCase test;
        (rows ? test.out : test.rows) = 0;
        Fp8LinearProblem problem(test);
        problem.state.fill([](std::int64_t i) { return i % 20 == 1 ? 0.25 : 4.0; });
        const OnGpu tensors(problem);
        const auto gpu = [&](HostTensor& tensor) { return tensors.of(problem, tensor).view(); };
        fp8_linear(problem.forward(gpu));
        CHECK(tensors.scales.download().get(0) == 0.25);
        CHECK(tensors.scales.download().get(1) == 0.25);
        check_states(tensors.state.download(), problem.state);
        fp8_state_reset(tensors.state.view());
        fp8_linear(problem.forward(gpu));
        CHECK(tensors.scales.download().get(0) == 1.0);
    }
}

TEST_CASE("fp8_linear: steps in a graph go on from the state that they find") {
    if (!has_graphs()) return;
    for (const bool own_memory : {false, true}) {
        for (const bool planned : {false, true})
            check_steps_in_a_graph(own_memory, planned);
    }
}

TEST_CASE("child: a layer in a capture" * doctest::skip()) {
    Layer layer;
    Fp8LinearProblem& problem = layer.problem;
    const OnGpu& tensors = layer.tensors;
    const TestStream& stream = layer.stream;
    const auto gpu = [&layer](HostTensor& tensor) { return layer.on_gpu(tensor); };
    fp8_state_reset(tensors.state.view(), stream);
    Fp8QuantizeArgs cast;  // the first kernel of the layer
    cast.x = gpu(problem.x);
    cast.out = gpu(problem.x_codes);
    cast.amax = gpu(problem.scales);
    cast.amax->shape[0] = 1;
    fp8_quantize(cast, stream);
    stream.synchronize();
    const HostTensor before = tensors.state.download();
    // Errors name the kernel that the call is named by, where it is missing.
    const auto check_refused = [&](const auto& call) {
        const CapturedGraph graph(stream, [&] {
            try {
                call();
                FAIL("it ran");
            } catch (const Error& error) {
                CHECK(error.code() == ErrorCode::capture);
                CHECK(std::string(error.what()).find("fp8_gemm_mma<") != std::string::npos);
            }
        });
        const GraphInstance instance(graph);
        instance.replay(stream);
        stream.synchronize();
        CHECK(differing(tensors.state.download(), before) == 0);
        CHECK(tensors.y.download().surroundings_intact());
    };
    check_refused([&] { fp8_linear(problem.forward(gpu), stream); });
    check_refused([&] { fp8_linear_backward(problem.backward(gpu), stream); });
    fp8_linear(problem.forward(gpu), stream);  // loads what backward has in common with it
    fp8_state_reset(tensors.state.view(), stream);
    check_refused([&] { fp8_linear_backward(problem.backward(gpu), stream); });
}

TEST_CASE("fp8_linear launches nothing in a capture while one of its kernels is not loaded") {
    if (!has_graphs()) return;
    CHECK(run_child("child: a layer in a capture") == 0);
}

TEST_CASE("fp8_linear under the sanitizer" * doctest::test_suite("sanitizer")) {
    Random random = Random::fresh();
    run_steps({}, random, 2);
    Fp8LinearCase many;
    many.rows = 3000;  // several blocks share the rows of grad_bias
    many.in = many.out = 16;
    run_steps(many, random, 1);
}

}  // namespace jitney::tests
