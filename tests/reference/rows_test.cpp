// What norms and gated activations mean, by definitions as plain as they can be.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "jitney/error.hpp"
#include "operations/gated_activation/reference.hpp"
#include "operations/rms_norm/reference.hpp"
#include "tests/support/row_problems.hpp"

namespace jitney::tests {
namespace {

constexpr auto kView = [](HostTensor& host) { return host.view(); };

// Of fp32, so that nothing but the definition counts.
void check_near(double actual, double expected) {
    CHECK(std::abs(actual - expected) <= 1e-6 * (1.0 + std::abs(expected)));
}

double activated(int activation, double x) {
    const double pi = std::acos(-1.0);
    switch (activation) {
        case 0:
            return x / (1 + std::exp(-x));
        case 1:
            return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
        case 2:
            return x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * std::pow(x, 3)))) / 2;
        default:
            return std::pow(std::max(x, 0.0), 2);
    }
}

}  // namespace

TEST_CASE("norms of rows in fp32, by their definition") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 100; ++round) {
        NormCase test = random_norm_case(random, 4, 40);
        test.dtype = DType::fp32;
        if (test.weight) test.weight = DType::fp32;
        test.codes = RowCodes::none;
        CAPTURE(test.text());
        NormProblem problem(test, random);
        problem.run_reference();
        for (std::int64_t row = 0; row < test.rows; ++row) {
            std::vector<double> s;
            for (std::int64_t i = 0; i < test.d; ++i) {
                double value = problem.x.at({row, i});
                if (test.residual) {
                    value = static_cast<float>(value + problem.residual.at({row, i}));
                    CHECK(problem.sum.at({row, i}) == value);
                }
                s.push_back(value);
            }
            double mean = 0;
            for (const double value : s)
                mean += test.subtract_mean ? value / static_cast<double>(test.d) : 0;
            double variance = 0;
            for (const double value : s)
                variance += (value - mean) * (value - mean) / static_cast<double>(test.d);
            for (std::int64_t i = 0; i < test.d; ++i) {
                double y = (s[static_cast<std::size_t>(i)] - mean) /
                           std::sqrt(variance + static_cast<double>(test.eps));
                if (test.weight) y *= problem.weight.get(i) + (test.one_plus_weight ? 1 : 0);
                if (test.bias) y += problem.bias.get(i);
                check_near(problem.out.at({row, i}), y);
            }
        }
    }
}

TEST_CASE("gates in fp32, by their definition") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 100; ++round) {
        GateCase test = random_gate_case(random, 4, 40);
        test.dtype = DType::fp32;
        test.codes = RowCodes::none;
        CAPTURE(test.text());
        GateProblem problem(test, random);
        problem.run_reference();
        for (std::int64_t row = 0; row < test.rows; ++row) {
            for (std::int64_t i = 0; i < test.d; ++i) {
                const double gate = problem.gate.at({row, i});
                const double up =
                    test.two ? problem.up.at({row, i}) : problem.gate.at({row, test.d + i});
                check_near(problem.out.at({row, i}), activated(test.activation, gate) * up);
            }
        }
    }
}

TEST_CASE("codes are values times a multiplier, or take each row to the largest code") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const RowCodes codes : {RowCodes::multiplied, RowCodes::scaled}) {
        GateCase test;
        test.dtype = DType::fp32;
        test.two = true;
        test.activation = 3;
        GateProblem values(test, random);
        values.run_reference();
        GateProblem coded = values;
        coded.test.codes = codes;
        coded.out = HostTensor(DType::fp8_e4m3, {test.rows, test.d});
        coded.run_reference();
        for (std::int64_t row = 0; row < test.rows; ++row) {
            double largest = 0;
            double largest_code = 0;
            for (std::int64_t i = 0; i < test.d; ++i)
                largest = std::max(largest, std::abs(values.out.at({row, i})));
            const double multiplier =
                codes == RowCodes::multiplied ? coded.multiplier.get(0) : 448.0 / largest;
            if (codes == RowCodes::scaled) check_near(coded.scale.get(row) * 448.0, largest);
            for (std::int64_t i = 0; i < test.d; ++i) {
                const double code = coded.out.at({row, i});
                const double scaled =
                    std::clamp(values.out.at({row, i}) * multiplier, -448.0, 448.0);
                CHECK(std::abs(code - scaled) <= 0.0626 * std::abs(scaled) + 0.001);
                largest_code = std::max(largest_code, std::abs(code));
            }
            if (codes == RowCodes::scaled) CHECK(largest_code == 448.0);
        }
    }
}

TEST_CASE("a row whose largest magnitude is 0, infinite or NaN has the scale 1") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    HostTensor x(DType::fp32, {3, 8});
    HostTensor up(DType::fp32, {3, 8});
    HostTensor out(DType::fp8_e4m3, {3, 8});
    HostTensor scale(DType::fp32, {3});
    x.fill([](std::int64_t i) { return i < 8 ? 0.0 : 2.0; });
    up.fill([](std::int64_t) { return 1.0; });
    x.set(8, infinity);
    x.set(16, std::nan(""));
    reference::gated_activation({x.view(), up.view(), out.view(), std::nullopt, scale.view(),
                                 reference::Activation::relu2});
    for (std::int64_t row = 0; row < 3; ++row)
        CHECK(scale.get(row) == 1.0);
    CHECK(out.get(0) == 0.0);
    CHECK(out.get(8) == 448.0);
    CHECK(out.get(9) == 4.0);
    CHECK(std::isnan(out.get(16)));
    CHECK(out.get(17) == 4.0);
}

TEST_CASE("the reference refuses rows that do not fit") {
    Random random(1);
    NormProblem problem(NormCase{}, random);
    const auto refused = [&](const auto& change) {
        auto call = problem.call<reference::RmsNorm>(kView);
        change(call);
        CHECK_THROWS_AS(reference::rms_norm(call), Error);
    };
    refused([](reference::RmsNorm& call) { call.out.shape[0] = 4; });
    refused([](reference::RmsNorm& call) { call.residual = call.x; });
    refused([](reference::RmsNorm& call) { call.weight->shape[0] = 3; });
    refused([](reference::RmsNorm& call) { call.out.dtype = DType::fp8_e4m3; });
    GateProblem gate(GateCase{}, random);
    auto call = gate.call<reference::GatedActivation>(kView);
    call.gate.shape[1] = 127;
    CHECK_THROWS_AS(reference::gated_activation(call), Error);
}

}  // namespace jitney::tests
