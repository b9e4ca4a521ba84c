// What a linear layer on FP8 remembers, on host tensors: multipliers, histories, and the first
// step.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/api/fp8_layer.hpp"

namespace jitney::tests {

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
}

TEST_CASE("a state without a history takes its first scales from the tensors") {
    for (const double size : {1e-12, 1e-6, 1.0, 1e6, 1e12}) {
        for (const int margin : {0, 3}) {
            CAPTURE(size);
            Fp8LinearCase test;
            test.recipe = delayed(4, margin);
            test.dtype = DType::fp32;
            Fp8LinearProblem problem = made(test);
            for (HostTensor* tensor : {&problem.x, &problem.weight, &problem.grad_y}) {
                for (std::int64_t i = 0; i < tensor->elements(); ++i)
                    tensor->set(i, size * tensor->get(i));
            }
            problem.bias.fill([](std::int64_t) { return 0.0; });
            forward(problem);
            backward(problem);
            const Exact wanted = exact(problem);
            CHECK(relative_error(problem.y, wanted.y) < 0.05);
            CHECK(relative_error(problem.grad_x, wanted.grad_x) < 0.1);
            CHECK(relative_error(problem.grad_weight, wanted.grad_weight) < 0.1);
            // The first codes are dynamic scaling's; the margin is for what follows.
            Fp8LinearCase own = test;
            own.recipe = dynamic();
            Fp8LinearProblem other = made(own);
            other.x = problem.x;
            other.weight = problem.weight;
            forward(other);
            CHECK(relative_error(problem.x_codes, other.x_codes) == 0);
            CHECK(problem.scales.get(0) == other.scales.get(0));
            CHECK(multiplier(problem, kX) ==
                  doctest::Approx(448.0 / std::ldexp(state_at(problem, kX, 2), margin)));
        }
    }
}

TEST_CASE("a state stays without a history until an amax can be scaled by") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const Fp8Amax amax : {Fp8Amax::window, Fp8Amax::latest}) {
        CHECK(multipliers_after(delayed(3, 1, amax), {0.0, infinity, std::nan(""), 2.0, 1.0}) ==
              std::vector<float>{0.0f, 0.0f, 0.0f, 112.0f,
                                 amax == Fp8Amax::latest ? 224.0f : 112.0f});
    }
    Fp8LinearProblem problem = made({});
    problem.x.fill([](std::int64_t) { return 0.0; });
    forward(problem);
    CHECK(problem.scales.get(0) == 1.0);
    CHECK(problem.scales.get(1) != 1.0);
    CHECK(problem.y.at({3, 2}) == doctest::Approx(problem.bias.get(2)).epsilon(0.01));
    CHECK(state_at(problem, kX, 4) == 0.0f);
}

TEST_CASE("a state of zeros is a new one, and a state with a history is not") {
    Fp8LinearProblem problem = made({});
    Fp8LinearProblem zeros = problem;
    zeros.state.fill([](std::int64_t) { return 0.0; });
    for (Fp8LinearProblem* each : {&problem, &zeros}) {
        forward(*each);
        backward(*each);
    }
    CHECK(relative_error(problem.state, zeros.state) == 0);
    // A tensor eight times as large as those before saturates under the scale that it finds.
    Fp8LinearProblem restored = made({});
    restored.state = problem.state;
    restored.x.fill([&](std::int64_t i) { return 8.0 * problem.x.get(i); });
    const float before = multiplier(restored, kX);
    forward(restored);
    CHECK(restored.scales.get(0) == 1.0f / before);
    double largest = 0;
    for (std::int64_t i = 0; i < restored.x.elements(); ++i)
        largest = std::max(largest, restored.x_codes.get(i));
    CHECK(largest == 448.0);
}

TEST_CASE("a call without results saves the scales of its state") {
    for (const bool is_dynamic : {false, true}) {
        for (const bool rows : {false, true}) {
            Fp8LinearCase test;
            test.recipe = is_dynamic ? dynamic() : delayed(2);
            Fp8LinearProblem full = made(test);
            (rows ? test.out : test.rows) = 0;
            Fp8LinearProblem empty(test);
            fp8_state_reset(empty.state.view());
            for (const double wanted : {1.0, 2.0}) {
                empty.scales.fill([](std::int64_t) { return std::nan(""); });
                forward(empty);
                CHECK(empty.scales.get(0) == (wanted == 1.0 ? 1.0 : state_at(full, kX, 1)));
                CHECK(empty.scales.get(1) == (wanted == 1.0 ? 1.0 : state_at(full, kWeight, 1)));
                CHECK(last_run().empty());
                forward(full);
                empty.state = full.state;
            }
        }
    }
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
    CHECK(multiplier(problem, kGradY) == 0.0f);
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

}  // namespace jitney::tests
