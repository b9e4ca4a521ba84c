// The linear layer on FP8, on host tensors: products, recipes, states, and bad calls.
#include "jitney/fp8_linear.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/support/fp8_linear_problem.hpp"

namespace jitney::tests {
namespace {

constexpr int kX = 0;
constexpr int kWeight = 1;
constexpr int kGradY = 2;

Tensor host(HostTensor& tensor) {
    return tensor.view();
}

float state_at(const Fp8LinearProblem& problem, int row, int column) {
    return static_cast<float>(problem.state.at({row, column}));
}
float multiplier(const Fp8LinearProblem& problem, int row) {
    return state_at(problem, row, 0);
}

void forward(Fp8LinearProblem& problem) {
    fp8_linear(problem.forward(host));
}
void backward(Fp8LinearProblem& problem) {
    fp8_linear_backward(problem.backward(host));
}

Fp8LinearProblem made(const Fp8LinearCase& test, std::uint64_t seed = 1) {
    Fp8LinearProblem problem(test);
    Random random(seed);
    problem.fill(random);
    fp8_state_reset(problem.state.view());
    return problem;
}

Fp8Recipe delayed(int history, int margin = 0, Fp8Amax amax = Fp8Amax::window) {
    Fp8Recipe recipe;
    recipe.history = history;
    recipe.margin = margin;
    recipe.amax = amax;
    return recipe;
}

Fp8Recipe dynamic(Fp8Formats formats = Fp8Formats::hybrid) {
    Fp8Recipe recipe;
    recipe.formats = formats;
    recipe.scaling = Fp8Scaling::dynamic;
    return recipe;
}

// Steps whose x has this amax; the multiplier of x after each.
std::vector<float> multipliers_after(const Fp8Recipe& recipe, const std::vector<double>& amaxes) {
    Fp8LinearCase test;
    test.recipe = recipe;
    test.dtype = DType::fp32;
    Fp8LinearProblem problem = made(test);
    std::vector<float> result;
    for (const double amax : amaxes) {
        problem.x.fill([](std::int64_t) { return 0.0; });
        problem.x.set(5, amax);
        forward(problem);
        result.push_back(multiplier(problem, kX));
    }
    return result;
}

struct Exact {
    HostTensor y;
    HostTensor grad_x;
    HostTensor grad_weight;
    HostTensor grad_bias;
};

// In double precision, without codes.
Exact exact(const Fp8LinearProblem& problem) {
    const Fp8LinearCase& test = problem.test;
    Exact result{HostTensor(DType::fp32, {test.rows, test.out}),
                 HostTensor(DType::fp32, {test.rows, test.in}),
                 HostTensor(DType::fp32, {test.out, test.in}), HostTensor(DType::fp32, {test.out})};
    const auto sum = [](std::int64_t count, const auto& term) {
        double total = 0;
        for (std::int64_t i = 0; i < count; ++i)
            total += term(i);
        return total;
    };
    for (std::int64_t r = 0; r < test.rows; ++r) {
        for (std::int64_t o = 0; o < test.out; ++o) {
            const double product = sum(test.in, [&](std::int64_t i) {
                return problem.x.at({r, i}) * problem.weight.at({o, i});
            });
            result.y.put({r, o}, product + (test.bias ? problem.bias.get(o) : 0.0));
        }
        for (std::int64_t i = 0; i < test.in; ++i) {
            result.grad_x.put({r, i}, sum(test.out, [&](std::int64_t o) {
                                  return problem.grad_y.at({r, o}) * problem.weight.at({o, i});
                              }));
        }
    }
    for (std::int64_t o = 0; o < test.out; ++o) {
        result.grad_bias.set(o, sum(test.rows, [&](std::int64_t r) {
                                 return problem.grad_y.at({r, o});
                             }));
        for (std::int64_t i = 0; i < test.in; ++i) {
            result.grad_weight.put({o, i}, sum(test.rows, [&](std::int64_t r) {
                                       return problem.grad_y.at({r, o}) * problem.x.at({r, i});
                                   }));
        }
    }
    return result;
}

}  // namespace

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

TEST_CASE("a larger margin never saturates more, and halves the multiplier each") {
    float last = std::numeric_limits<float>::infinity();
    for (const int margin : {0, 1, 2, 5}) {
        const std::vector<float> after = multipliers_after(delayed(4, margin), {2.0, 2.0});
        CHECK(after[1] == std::ldexp(224.0f, -margin));
        CHECK(after[1] < last);
        last = after[1];
        // A tensor that grows after the multiplier was made: what margin keeps within reach.
        Fp8LinearCase test;
        test.recipe = delayed(4, margin);
        Fp8LinearProblem problem = made(test);
        problem.x.fill([](std::int64_t) { return 2.0; });
        forward(problem);
        problem.x.fill([](std::int64_t) { return 6.0; });
        forward(problem);
        int saturated = 0;
        for (std::int64_t i = 0; i < problem.x_codes.elements(); ++i)
            saturated += problem.x_codes.get(i) == 448.0 ? 1 : 0;
        CHECK((saturated == 0) == (margin >= 2));
    }
}

TEST_CASE("an amax of 0, infinity or NaN keeps the multiplier") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double odd : {0.0, infinity, -infinity, std::nan("")}) {
        const std::vector<float> after = multipliers_after(delayed(1), {2.0, odd, 4.0});
        CHECK(after[0] == 224.0f);
        CHECK(after[1] == 224.0f);
        CHECK(after[2] == 112.0f);
    }
    CHECK(multipliers_after(delayed(1), {0.0})[0] == 1.0f);
}

TEST_CASE("a multiplier that would be infinite is the largest finite one") {
    CHECK(multipliers_after(delayed(1), {1e-42})[0] == std::numeric_limits<float>::max());
}

TEST_CASE("no margin makes a multiplier or its inverse infinite or 0, or a result NaN") {
    constexpr float kSmallest = std::numeric_limits<float>::min();
    for (const Fp8Formats formats : {Fp8Formats::e4m3, Fp8Formats::e5m2, Fp8Formats::hybrid}) {
        const int most = formats == Fp8Formats::e5m2 ? 32 : 18;
        for (const double amax : {1e-44, 1e-30, 1.0, 1000.0, 1e18, 3e38}) {
            int saturated_before = std::numeric_limits<int>::max();
            for (int margin = 0; margin <= most; ++margin) {
                CAPTURE(static_cast<int>(formats));
                CAPTURE(amax);
                CAPTURE(margin);
                Fp8LinearCase test;
                test.dtype = DType::fp32;
                test.rows = 4;
                test.in = 8;
                test.out = 3;
                test.recipe = delayed(2, margin);
                test.recipe.formats = formats;
                Fp8LinearProblem problem = made(test);
                problem.x.fill([&](std::int64_t i) { return i % 8 == 0 ? amax : 0.0; });
                problem.weight.fill([&](std::int64_t i) { return i % 8 == 0 ? amax : 0.0; });
                problem.grad_y.fill([&](std::int64_t) { return amax; });
                for (int step = 0; step < 2; ++step) {
                    forward(problem);
                    backward(problem);
                }
                for (const int row : {kX, kWeight, kGradY}) {
                    CHECK(multiplier(problem, row) >= kSmallest);
                    CHECK(std::isfinite(multiplier(problem, row)));
                    CHECK(state_at(problem, row, 1) == 1.0f / multiplier(problem, row));
                    CHECK(state_at(problem, row, 1) > 0.0f);
                    CHECK(std::isfinite(state_at(problem, row, 1)));
                    CHECK(std::isfinite(state_at(problem, row, 3)));
                }
                for (std::int64_t i = 0; i < problem.y.elements(); ++i)
                    CHECK_FALSE(std::isnan(problem.y.get(i)));
                for (std::int64_t i = 0; i < problem.grad_x.elements(); ++i)
                    CHECK_FALSE(std::isnan(problem.grad_x.get(i)));
                // Of a tensor that has grown beyond what was known of it.
                problem.x.fill([&](std::int64_t i) {
                    return std::min(amax * static_cast<double>(i), 3.4e38);
                });
                forward(problem);
                const double largest =
                    problem.test.forward_format() == DType::fp8_e4m3 ? 448 : 57344;
                int saturated = 0;
                for (std::int64_t i = 0; i < problem.x_codes.elements(); ++i)
                    saturated += problem.x_codes.get(i) == largest ? 1 : 0;
                CHECK(saturated <= saturated_before);
                saturated_before = saturated;
            }
        }
    }
}

TEST_CASE("with the largest margin the largest value has a code, and results are near") {
    for (const Fp8Formats formats : {Fp8Formats::e4m3, Fp8Formats::e5m2}) {
        Fp8LinearCase test;
        test.dtype = DType::fp32;
        test.recipe = delayed(2, formats == Fp8Formats::e4m3 ? 18 : 32);
        test.recipe.formats = formats;
        Fp8LinearProblem problem = made(test);
        problem.x.fill([](std::int64_t) { return 1000.0; });
        problem.weight.fill([](std::int64_t) { return 1000.0; });
        forward(problem);
        forward(problem);
        CHECK(problem.x_codes.get(7) == (formats == Fp8Formats::e4m3 ? 0x1p-9 : 0x1p-16));
        CHECK(relative_error(problem.y, exact(problem).y) < 0.4);
        // One more, and there would be nothing left.
        test.recipe.margin += 1;
        CHECK_THROWS_WITH_AS(fp8_state_columns(test.recipe), doctest::Contains("margin"), Error);
    }
}

TEST_CASE("the window's largest amax counts, or the latest") {
    const std::vector<double> amaxes = {8.0, 1.0, 1.0, 1.0, 2.0};
    CHECK(multipliers_after(delayed(3), amaxes) ==
          std::vector<float>{56.0f, 56.0f, 56.0f, 448.0f, 224.0f});
    CHECK(multipliers_after(delayed(3, 0, Fp8Amax::latest), amaxes) ==
          std::vector<float>{56.0f, 448.0f, 448.0f, 448.0f, 224.0f});
}

TEST_CASE("amax of grad_y is kept whichever gradients are wanted") {
    for (const int wanted : {1, 2, 4, 3, 7}) {
        for (const bool is_dynamic : {false, true}) {
            Fp8LinearCase test;
            test.recipe = is_dynamic ? dynamic() : delayed(2);
            Fp8LinearProblem problem = made(test);
            forward(problem);
            Fp8LinearBackwardArgs args = problem.backward(host);
            if ((wanted & 1) == 0) args.grad_x.reset();
            if ((wanted & 2) == 0) args.grad_weight.reset();
            if ((wanted & 4) == 0) args.grad_bias.reset();
            fp8_linear_backward(args);
            double amax = 0;
            for (std::int64_t i = 0; i < problem.grad_y.elements(); ++i)
                amax = std::max(amax, std::fabs(problem.grad_y.get(i)));
            CHECK(state_at(problem, kGradY, 2) == static_cast<float>(amax));
            if (!is_dynamic) CHECK(state_at(problem, kGradY, 4) == static_cast<float>(amax));
        }
    }
}

TEST_CASE("a state that did not run does not roll") {
    Fp8LinearProblem problem = made({});
    forward(problem);
    const HostTensor before = problem.state;
    // No backward: grad_y's row is as it was reset.
    CHECK(multiplier(problem, kGradY) == 1.0f);
    CHECK(state_at(problem, kGradY, 4) == 0.0f);
    // No rows: nothing rolls, forward or backward, and the gradients of the weights are zeros.
    Fp8LinearCase empty;
    empty.rows = 0;
    Fp8LinearProblem nothing(empty);
    nothing.state = before;
    nothing.weight_codes = problem.weight_codes;
    forward(nothing);
    CHECK(last_run().empty());
    backward(nothing);
    for (std::int64_t i = 0; i < before.elements(); ++i)
        CHECK(nothing.state.get(i) == before.get(i));
    for (std::int64_t i = 0; i < nothing.grad_weight.elements(); ++i)
        CHECK(nothing.grad_weight.get(i) == 0.0);
    CHECK(nothing.grad_bias.get(3) == 0.0);
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

TEST_CASE("a state that was saved and restored goes on as if nothing had happened") {
    Fp8LinearProblem problem = made({});
    for (int step = 0; step < 5; ++step) {
        forward(problem);
        backward(problem);
    }
    std::vector<std::byte> bytes(problem.state.storage().begin(), problem.state.storage().end());
    Fp8LinearProblem restored = made({});
    std::memcpy(restored.state.storage().data(), bytes.data(), bytes.size());
    for (Fp8LinearProblem* each : {&problem, &restored}) {
        forward(*each);
        backward(*each);
    }
    CHECK(relative_error(problem.y, restored.y) == 0);
    CHECK(relative_error(problem.grad_weight, restored.grad_weight) == 0);
    for (std::int64_t i = 0; i < problem.state.elements(); ++i)
        CHECK(problem.state.get(i) == restored.state.get(i));
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
        {"a state that was never reset",
         [](auto& a) {
             static std::array<float, 60> zeros{};
             a.state.data = zeros.data();
         },
         {"state[0][0]", "is 0", "fp8_state_reset"}},
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
        {"a state that was never reset",
         [](auto& a) {
             static std::array<float, 60> zeros{};
             a.state.data = zeros.data();
         },
         {"state[2][0]", "is 0", "fp8_state_reset"}},
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
