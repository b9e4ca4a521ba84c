// fp8_update and column_sums against the reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel_sources/fp8/column_sums_params.h"
#include "kernel_sources/fp8/state.h"
#include "kernel_sources/fp8/update_params.h"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "operations/fp8_linear/update.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/compare.hpp"

namespace jitney::emulator {
namespace {

// Three rows of a state, the scales that a step used, and the products of scales.
struct State {
    State(int history_length, tests::Random& random)
        : history(history_length), numbers(static_cast<std::size_t>(3 * columns() + 4)) {
        for (float& each : numbers)
            each = static_cast<float>(random.uniform(0.1, 3.0));
        for (int row = 0; row < 3; ++row) {
            const auto begin = numbers.begin() + row * columns();
            if (random.chance(0.3)) begin[kFp8StateMultiplier] = 0.0f;
            if (random.chance(0.3)) std::fill_n(begin, columns(), 0.0f);
            float& amax = numbers[static_cast<std::size_t>(row * columns() + kFp8StateAmax)];
            const std::array<float, 5> some = {0.0f, 1e-42f, 2.5f,
                                               std::numeric_limits<float>::infinity(),
                                               std::numeric_limits<float>::quiet_NaN()};
            amax = random.pick(std::span<const float>(some));
        }
    }
    int columns() const { return kFp8StateHistory + history; }

    Fp8UpdateParams params(float* at) const {
        const auto row = [&](int i) { return at + i * columns(); };
        float* const more = row(3);
        Fp8UpdateParams params{};
        params.history = history;
        params.rows[0] = {row(0), 448.0f, more};
        params.rows[1] = {row(2), 57344.0f, nullptr};
        params.products[0] = {more + 1, row(0) + kFp8StateScale, row(1) + kFp8StateScale};
        params.products[1] = {more + 2, row(2) + kFp8StateScale, row(2) + kFp8StateScale};
        return params;
    }

    int history;
    std::vector<float> numbers;
};

policy::Geometry update_geometry(const policy::Spec& spec) {
    policy::Geometry geometry =
        policy::choose_fp8_update(policy::typical_facts(spec.arch())).geometry;
    geometry.block[0] = static_cast<unsigned>(policy::value_of(spec, "threads"));
    geometry.shared_bytes = policy::shared_bytes(spec);
    return geometry;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::bit_cast<unsigned>(a[i]) != std::bit_cast<unsigned>(b[i]) &&
            !(std::isnan(a[i]) && std::isnan(b[i]))) {
            return false;
        }
    }
    return true;
}

}  // namespace

TEST_CASE("fp8_update") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_update)) {
        INFO(policy::text_of(covered.spec), ", ", random.text());
        const int threads = policy::value_of(covered.spec, "threads");
        const policy::Geometry geometry = update_geometry(covered.spec);
        for (const int history :
             {0, 1, 2, 16, threads - 1, threads, threads + 1, 3 * threads + 5}) {
            for (int step = 0; step < 4; ++step) {
                State state(history, random);
                Buffer buffer(state.numbers.size() * sizeof(float), "a state");
                std::ranges::copy(state.numbers, buffer.as<float>());
                Fp8UpdateParams params = state.params(buffer.as<float>());
                params.latest = static_cast<int>(random.integer(0, 1));
                params.margin_power = static_cast<float>(std::ldexp(1.0, step));
                launch_choice(covered.spec, geometry, &params, random);
                Fp8UpdateParams expected = state.params(state.numbers.data());
                expected.latest = params.latest;
                expected.margin_power = params.margin_power;
                reference::fp8_update(expected);
                std::vector<float> actual(state.numbers.size());
                buffer.copy_out(0, std::as_writable_bytes(std::span(actual)));
                CHECK(same_bits(actual, state.numbers));
            }
        }
    }
}

// The reference is made of the kernel's own formulas.
TEST_CASE("fp8_update: multipliers in numbers") {
    tests::Random random(run_seed());
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kLargest = std::numeric_limits<float>::max();
    struct Step {
        float amax;
        float margin_power;
        float multiplier;  // of E4M3, after 3
    };
    constexpr float kSmallest = std::numeric_limits<float>::min();
    const std::array<Step, 12> steps = {{{2.0f, 1.0f, 224.0f},
                                         {2.0f, 4.0f, 56.0f},
                                         {448.0f, 1.0f, 1.0f},
                                         {0.0f, 1.0f, 3.0f},
                                         {kInfinity, 1.0f, 3.0f},
                                         {std::numeric_limits<float>::quiet_NaN(), 1.0f, 3.0f},
                                         {kLargest, 1.0f, 448.0f / kLargest},
                                         {1e-42f, 1.0f, kLargest},
                                         {1000.0f, 0x1p18f, 448.0f / 0x1p18f / 1000.0f},
                                         {kLargest, 0x1p18f, kSmallest},
                                         {1e32f, 0x1p32f, kSmallest},
                                         // Beyond fp32 without the margin.
                                         {1e-36f, 4.0f, 112.0f / 1e-36f}}};
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_update)) {
        for (const Step& step : steps) {
            CAPTURE(step.amax);
            std::array<float, kFp8StateHistory + 1> state{};
            state[kFp8StateMultiplier] = 3.0f;
            state[kFp8StateAmax] = step.amax;
            Buffer buffer(sizeof state, "a state");
            std::ranges::copy(state, buffer.as<float>());
            Fp8UpdateParams params{};
            params.history = 1;
            params.margin_power = step.margin_power;
            params.rows[0] = {buffer.as<float>(), 448.0f, nullptr};
            launch_choice(covered.spec, update_geometry(covered.spec), &params, random);
            buffer.copy_out(0, std::as_writable_bytes(std::span(state)));
            CHECK(state[kFp8StateMultiplier] == step.multiplier);
            CHECK(state[kFp8StateScale] == 1.0f / step.multiplier);
        }
    }
}

TEST_CASE("fp8_update: products of scales are finite") {
    tests::Random random(run_seed());
    struct Product {
        float a;
        float b;
        float product;
    };
    constexpr float kLargest = std::numeric_limits<float>::max();
    const std::array<Product, 5> products = {{{0.5f, 0.25f, 0.125f},
                                              {4e19f, 4e19f, kLargest},
                                              {0x1p126f, 0x1p126f, kLargest},
                                              {1.0f / kLargest, 0x1p126f, 0x1p-2f},
                                              {1.0f / kLargest, 1.0f / kLargest, 0.0f}}};
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_update)) {
        for (const Product& each : products) {
            CAPTURE(each.a);
            std::array<float, 3> numbers{-1.0f, each.a, each.b};
            Buffer buffer(sizeof numbers, "scales");
            std::ranges::copy(numbers, buffer.as<float>());
            Fp8UpdateParams params{};
            float* const at = buffer.as<float>();
            params.products[1] = {at, at + 1, at + 2};
            launch_choice(covered.spec, update_geometry(covered.spec), &params, random);
            buffer.copy_out(0, std::as_writable_bytes(std::span(numbers)));
            CHECK(numbers[0] == doctest::Approx(each.product).epsilon(1e-6));
            CHECK(std::isfinite(numbers[0]));
        }
    }
}

TEST_CASE("column_sums") {
    tests::Random random(run_seed());
    constexpr std::array dtypes = {DType::fp32, DType::fp16, DType::bf16};
    for (const Covered& covered : covered_lines(policy::KernelId::column_sums)) {
        const auto dtype = [&](const char* name) {
            return dtypes[static_cast<std::size_t>(policy::value_of(covered.spec, name))];
        };
        for (int i = 0; i < problems_a_line(12); ++i) {
            const std::int64_t rows = random.chance(0.2) ? i : random.integer(0, 2000);
            const std::int64_t cols = random.integer(1, 200);
            const std::int64_t padding = random.chance(0.5) ? 0 : random.integer(1, 9);
            INFO(policy::text_of(covered.spec), ": ", rows, " x ", cols, ", padding ", padding,
                 ", ", random.text());
            tests::HostTensor x(dtype("format"), {rows, cols}, {{}, {0, padding}});
            x.fill_normal(random);
            tests::HostTensor out(dtype("out"), {cols});
            // Now and then with rows so far apart that no 32 bits hold their distance.
            const EmulatedTensor device_x(
                x, EmulatedTensor::Use::input, i % 2, {},
                i % 4 >= 2 ? EmulatedTensor::Spread::far : EmulatedTensor::Spread::near);
            const EmulatedTensor device_out(out, EmulatedTensor::Use::output);
            policy::ColumnSumsProblem problem;
            problem.format = static_cast<int>(x.dtype());
            problem.out = static_cast<int>(out.dtype());
            problem.rows = rows;
            problem.cols = static_cast<int>(cols);
            policy::DeviceFacts facts = policy::typical_facts(covered.spec.arch());
            facts.sm_count = static_cast<int>(random.integer(1, 6));
            const policy::ColumnSumsChoice choice = policy::choose_column_sums(problem, facts);
            REQUIRE(choice.spec == covered.spec);
            Buffer parts(choice.part_bytes, "parts");
            Buffer counters(choice.counter_bytes, "counters");
            std::ranges::fill(std::span(counters.data(), counters.bytes()), std::byte{0});
            const Tensor view = device_x.view();
            ColumnSumsParams params{};
            params.x = view.data;
            params.out = device_out.view().data;
            params.x_stride = view.strides[0];
            params.rows = rows;
            params.rows_a_split = choice.rows_a_split;
            params.cols = problem.cols;
            params.column_blocks = choice.column_blocks;
            params.splits = choice.splits;
            params.wide = i % 2 == 0 && view.strides[0] * size_of(x.dtype()) % 16 == 0 ? 1 : 0;
            params.parts = parts.as<float>();
            params.arrived = counters.as<unsigned>();
            reference::column_sums(x.view(), out.view());
            const auto launch = [&](BlockOrder order) {
                // The parts of the launch before would stand in for those that are not there yet.
                std::ranges::fill(std::span(parts.data(), parts.bytes()), std::byte{0xff});
                launch_choice(covered.spec, choice.geometry, &params, random, {.order = order});
            };
            launch(BlockOrder::shuffled);
            const tests::HostTensor actual = device_out.download();
            CHECK(actual.surroundings_intact());
            JITNEY_CHECK_CLOSE(actual, out, (tests::Tolerance{1e-3, 1e-2}));
            check_any_order(launch, [&] { return device_out.bits(); });
        }
    }
}

}  // namespace jitney::emulator
