// The linear layer on FP8, on host tensors: products, recipes, and bad calls.
#include "jitney/fp8_linear.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fp8_layer.hpp"

namespace jitney::tests {

TEST_CASE("forward and backward are near the exact products, in every format and recipe") {
    for (const Fp8Formats formats : {Fp8Formats::e4m3, Fp8Formats::e5m2, Fp8Formats::hybrid}) {
        for (const bool is_dynamic : {false, true}) {
            Fp8LinearCase test;
            test.recipe = is_dynamic ? dynamic(formats) : delayed(4);
            test.recipe.formats = formats;
            Fp8LinearProblem problem = made(test);
            // The second step has multipliers of the first.
            for (int step = 0; step < (is_dynamic ? 1 : 2); ++step) {
                forward(problem);
                CHECK(last_run() == "reference");
                backward(problem);
            }
            const Exact wanted = exact(problem);
            // Codes of 2 or 3 bits of mantissa are off by a sixteenth or an eighth at most, and by
            // less on average.
            const double forward_limit = formats == Fp8Formats::e5m2 ? 0.1 : 0.05;
            const double backward_limit = formats == Fp8Formats::e4m3 ? 0.05 : 0.1;
            CAPTURE(static_cast<int>(formats));
            CAPTURE(is_dynamic);
            CHECK(relative_error(problem.y, wanted.y) < forward_limit);
            CHECK(relative_error(problem.grad_x, wanted.grad_x) < backward_limit);
            CHECK(relative_error(problem.grad_weight, wanted.grad_weight) < backward_limit);
            CHECK(relative_error(problem.grad_bias, wanted.grad_bias) < 1e-5);
        }
    }
}

TEST_CASE("a backward pass uses the scales that its codes have, not those of later steps") {
    Fp8LinearProblem problem = made({});
    forward(problem);
    forward(problem);
    const float of_x = static_cast<float>(problem.scales.get(0));
    CHECK(of_x != state_at(problem, kX, 1) * 2.0f);
    // Another batch moves the state on, and is not kept.
    Fp8LinearProblem other = problem;
    other.x.fill([](std::int64_t) { return 1000.0; });
    Fp8LinearArgs args = other.forward(host);
    args.saved.reset();
    fp8_linear(args);
    problem.state = other.state;
    backward(problem);
    backward(problem);
    CHECK(relative_error(problem.grad_weight, exact(problem).grad_weight) < 0.1);
}

TEST_CASE("a layer without in_features gives the bias, and its gradient") {
    for (const bool is_dynamic : {false, true}) {
        Fp8LinearCase test;
        test.in = 0;
        if (is_dynamic) test.recipe = dynamic();
        Fp8LinearProblem problem = made(test);
        // What is not known of x and weight does not count.
        for (const int row : {kX, kWeight})
            problem.state.put({row, 1}, std::numeric_limits<double>::infinity());
        forward(problem);
        CHECK(last_run() == "reference");
        for (std::int64_t row = 0; row < test.rows; ++row) {
            for (std::int64_t col = 0; col < test.out; ++col)
                CHECK(problem.y.at({row, col}) ==
                      doctest::Approx(problem.bias.get(col)).epsilon(0.01));
        }
        backward(problem);
        CHECK(last_run() == "reference");
        CHECK(relative_error(problem.grad_bias, exact(problem).grad_bias) < 1e-5);
    }
}

TEST_CASE("a layer without out_features leaves its state, and reads no scales that nobody wrote") {
    Fp8LinearCase test;
    test.out = 0;
    Fp8LinearProblem problem = made(test);
    const HostTensor before = problem.state;
    problem.scales.fill([](std::int64_t) { return std::nan(""); });
    forward(problem);
    CHECK(last_run().empty());
    problem.grad_x.fill([](std::int64_t) { return 7.0; });
    backward(problem);
    CHECK(last_run() == "reference");
    for (std::int64_t i = 0; i < problem.grad_x.elements(); ++i)
        CHECK(problem.grad_x.get(i) == 0.0);
    for (std::int64_t i = 0; i < before.elements(); ++i)
        CHECK(problem.state.get(i) == before.get(i));
}

TEST_CASE("on the host codes that are not saved need no memory of the caller's") {
    Fp8LinearCase test;
    test.recipe = dynamic();
    Fp8LinearProblem problem = made(test);
    forward(problem);
    Fp8LinearProblem unsaved = made(test);
    unsaved.test.saved = false;
    forward(unsaved);
    CHECK(relative_error(unsaved.y, problem.y) == 0);
    CHECK(workspace_bytes(unsaved.forward(host)) == 0);
    CHECK(workspace_bytes(problem.backward(host)) == 0);
}

TEST_CASE("bad calls of the linear layer are refused with a sentence") {
    using Bad = BadCall<Fp8LinearArgs>;
    const std::vector<Bad> bad_calls = {
        {"margin", [](auto& a) { a.recipe.margin = -1; }, {"recipe.margin is -1"}},
        {"a margin that leaves nothing",
         [](auto& a) { a.recipe.margin = 19; },
         {"recipe.margin is 19", "0 to 18"}},
        {"a margin that leaves nothing of E5M2",
         [](auto& a) {
             a.recipe.formats = Fp8Formats::e5m2;
             a.recipe.margin = 33;
         },
         {"recipe.margin is 33", "0 to 32"}},
        {"more rows than a product has",
         [](auto& a) {
             reshape(a.x, {46341, 46341, 1});
             a.x.strides[0] = a.x.strides[1] = 0;
         },
         {"x has the shape [46341, 46341, 1]", "2147488281 rows", "split"}},
        {"null workspace", [](auto& a) { a.workspace.bytes = 512; }, {"workspace is null", "512"}},
        {"workspace at an odd place",
         [](auto& a) {
             a.workspace = {reinterpret_cast<void*>(std::uintptr_t{0x10010}), 1 << 20};
         },
         {"workspace begins at 0x10010", "256"}},
        {"history", [](auto& a) { a.recipe.history = 0; }, {"recipe.history is 0"}},
        {"formats", [](auto& a) { a.recipe.formats = static_cast<Fp8Formats>(3); }, {"formats"}},
        {"state of another history",
         [](auto& a) { a.recipe.history = 5; },
         {"state has the shape [3, 20]", "[3, 9]"}},
        {"state of two rows", [](auto& a) { a.state.shape[0] = 2; }, {"state", "[2, 20]"}},
        {"codes of another format",
         [](auto& a) { a.saved->x_codes.dtype = DType::fp8_e5m2; },
         {"saved.x_codes", "fp8_e5m2", "fp8_e4m3"}},
        {"weight of another width",
         [](auto& a) { a.weight.shape[1] = a.weight.strides[0] = 39; },
         {"weight", "39", "40"}},
        {"y of another width", [](auto& a) { a.y.shape[1] = 16; }, {"y has the shape [24, 16]"}},
        {"int x", [](auto& a) { a.x.dtype = DType::int32; }, {"x has the dtype int32"}},
        {"fp16 bias",
         [](auto& a) { a.bias->dtype = DType::fp16; },
         {"bias", "fp16", "bf16 or fp32"}},
        {"null weight", [](auto& a) { a.weight.data = nullptr; }, {"weight", "no data"}},
        {"y is x", [](auto& a) { a.y.data = a.x.data; }, {"y begins where x does"}},
        {"state elsewhere",
         [](auto& a) {
             a.state.device = {DeviceType::cuda, 0};
         },
         {"state", "GPU 0"}},
    };
    Fp8LinearProblem problem = made({});
    const HostTensor before = problem.state;
    for (const Bad& bad : bad_calls)
        check_refused(bad, problem.forward(host), [](const auto& args) { fp8_linear(args); });
    forward(problem);

    using BadBackward = BadCall<Fp8LinearBackwardArgs>;
    const std::vector<BadBackward> bad_backward = {
        {"nothing wanted",
         [](auto& a) {
             a.grad_x.reset();
             a.grad_weight.reset();
             a.grad_bias.reset();
         },
         {"neither grad_x"}},
        {"grad_x of another width",
         [](auto& a) { a.grad_x->shape[1] = 41; },
         {"grad_x", "[24, 41]"}},
        {"null workspace", [](auto& a) { a.workspace.bytes = 512; }, {"workspace is null", "512"}},
        {"workspace at an odd place",
         [](auto& a) {
             a.workspace = {reinterpret_cast<void*>(std::uintptr_t{0x10010}), 1 << 20};
         },
         {"workspace begins at 0x10010", "256"}},
        {"scales of one", [](auto& a) { a.saved.scales.shape[0] = 1; }, {"saved.scales", "[1]"}},
        {"grad_bias of another length",
         [](auto& a) { a.grad_bias->shape[0] = 16; },
         {"grad_bias", "[16]"}},
        {"codes of another format",
         [](auto& a) { a.recipe.formats = Fp8Formats::e5m2; },
         {"saved.x_codes", "fp8_e5m2"}},
    };
    for (const BadBackward& bad : bad_backward) {
        check_refused(bad, problem.backward(host),
                      [](const auto& args) { fp8_linear_backward(args); });
    }
    for (const int column : {0, 1})
        CHECK(problem.state.at({kWeight, column}) > before.at({kWeight, column}) * 0);
}

}  // namespace jitney::tests
