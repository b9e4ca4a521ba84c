// fp8_quantize on the reference backend. The cast is compared with a search over all codes.
#include "operations/fp8_quantize/reference.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "jitney/error.hpp"
#include "operations/reference/numeric.hpp"
#include "tests/support/fp8_quantize_problem.hpp"

namespace jitney::tests {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double value_of(std::uint8_t code, DType format) {
    return format == DType::fp8_e4m3 ? reference::from_e4m3(code) : reference::from_e5m2(code);
}

// The code of the value that is nearest, the even one of two that are equally near; NaN's for NaN.
std::uint8_t nearest_code(double x, DType format) {
    const std::uint8_t largest = format == DType::fp8_e4m3 ? 0x7E : 0x7B;
    if (std::isnan(x)) return 0x7F;
    std::uint8_t best = 0;
    double best_distance = std::numeric_limits<double>::infinity();
    const double magnitude = std::min(std::fabs(x), value_of(largest, format));
    for (unsigned code = 0; code <= largest; ++code) {
        const auto candidate = static_cast<std::uint8_t>(code);
        const double distance = std::fabs(value_of(candidate, format) - magnitude);
        if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
            best = candidate;
            best_distance = distance;
        }
    }
    return static_cast<std::uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

std::uint8_t byte_at(HostTensor& tensor, std::int64_t index) {
    return static_cast<const std::uint8_t*>(tensor.view().data)[index];
}

float only(const HostTensor& number) {
    return static_cast<float>(number.get(0));
}

// x as one row, quantized.
Fp8QuantizeProblem quantized(const std::vector<float>& x, Fp8QuantizeCase test) {
    Random random(1);
    test.dtype = DType::fp32;
    test.shape = {1, static_cast<std::int64_t>(x.size())};
    Fp8QuantizeProblem problem(test, random);
    problem.x.fill([&x](std::int64_t i) { return x[static_cast<std::size_t>(i)]; });
    problem.run_reference();
    return problem;
}

}  // namespace

TEST_CASE("every bf16 and fp16 number gets the nearest code, ties to even, saturating") {
    for (const DType dtype : {DType::bf16, DType::fp16}) {
        HostTensor x = every_number(dtype);
        for (const DType format : {DType::fp8_e4m3, DType::fp8_e5m2}) {
            Random random(1);
            Fp8QuantizeCase test;
            test.dtype = dtype;
            test.out = format;
            test.shape = {65536};
            Fp8QuantizeProblem problem(test, random);
            problem.x = x;
            problem.run_reference();
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < 65536; ++i) {
                const std::uint8_t code = byte_at(problem.out, i);
                const std::uint8_t wanted = nearest_code(x.get(i), format);
                const bool both_nan = std::isnan(value_of(code, format)) && std::isnan(x.get(i));
                wrong += code == wanted || both_nan ? 0 : 1;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("what is too large saturates, infinities too, and NaN stays NaN") {
    Fp8QuantizeCase test;
    const std::vector<float> x = {448.0f, 449.0f, 1e30f, kInfinity, -kInfinity, -465.0f, kNan};
    Fp8QuantizeProblem e4m3 = quantized(x, test);
    for (const std::int64_t i : {0, 1, 2, 3})
        CHECK(e4m3.out.get(i) == 448.0);
    CHECK(e4m3.out.get(4) == -448.0);
    CHECK(e4m3.out.get(5) == -448.0);
    CHECK(std::isnan(e4m3.out.get(6)));
    test.out = DType::fp8_e5m2;
    Fp8QuantizeProblem e5m2 = quantized({57344.0f, 61440.0f, kInfinity, -kInfinity, kNan}, test);
    for (const std::int64_t i : {0, 1, 2})
        CHECK(byte_at(e5m2.out, i) == 0x7B);
    CHECK(byte_at(e5m2.out, 3) == 0xFB);
    CHECK(std::isnan(e5m2.out.get(4)));
}

TEST_CASE("what is tiny becomes a zero of its sign, from the tie down") {
    Fp8QuantizeCase test;
    Fp8QuantizeProblem e4m3 =
        quantized({0x1p-10f, 0x1.8p-10f, -0x1p-10f, 0x1.002p-10f, -0.0f}, test);
    CHECK(byte_at(e4m3.out, 0) == 0x00);
    CHECK(byte_at(e4m3.out, 1) == 0x01);
    CHECK(byte_at(e4m3.out, 2) == 0x80);
    CHECK(byte_at(e4m3.out, 3) == 0x01);
    CHECK(byte_at(e4m3.out, 4) == 0x80);
    test.out = DType::fp8_e5m2;
    Fp8QuantizeProblem e5m2 = quantized({0x1p-17f, 0x1.8p-17f}, test);
    CHECK(byte_at(e5m2.out, 0) == 0x00);
    CHECK(byte_at(e5m2.out, 1) == 0x01);
}

TEST_CASE("the multiplier multiplies, and scale is its inverse") {
    Fp8QuantizeCase test;
    test.multiplier = 4.0;
    test.scale = true;
    const Fp8QuantizeProblem problem = quantized({1.0f, -2.5f, 100.0f, 200.0f}, test);
    CHECK(problem.out.get(0) == 4.0);
    CHECK(problem.out.get(1) == -10.0);
    CHECK(problem.out.get(2) == 384.0);  // 400 is a tie between 384 and 416
    CHECK(problem.out.get(3) == 448.0);
    CHECK(only(problem.scale) == 0.25f);
}

TEST_CASE("amax is of |x| before scaling, and one NaN makes it NaN") {
    Fp8QuantizeCase test;
    test.amax = true;
    test.multiplier = 16.0;
    CHECK(only(quantized({1.0f, -300.0f, 2.0f}, test).amax) == 300.0f);
    CHECK(only(quantized({1.0f, -kInfinity, 2.0f}, test).amax) == kInfinity);
    CHECK(std::isnan(only(quantized({1.0f, kNan, kInfinity}, test).amax)));
    CHECK(std::isnan(only(quantized({-kNan, 1.0f}, test).amax)));
    CHECK(only(quantized({0.0f, -0.0f}, test).amax) == 0.0f);
    test.rows = false;  // amax alone
    test.multiplier.reset();
    CHECK(only(quantized({1.0f, -300.0f, 2.0f}, test).amax) == 300.0f);
}

TEST_CASE("dynamic scaling of amax zero, tiny, normal, infinite and NaN, in both formats") {
    for (const DType format : {DType::fp8_e4m3, DType::fp8_e5m2}) {
        const float largest = format == DType::fp8_e4m3 ? 448.0f : 57344.0f;
        Fp8QuantizeCase test;
        test.out = format;
        test.dynamic = test.amax = test.scale = true;

        const Fp8QuantizeProblem normal = quantized({0.5f, -3.0f, 1.0f}, test);
        CHECK(only(normal.multiplier) == largest / 3.0f);
        CHECK(only(normal.scale) == 1.0f / (largest / 3.0f));
        CHECK(normal.out.get(1) == -largest);
        CHECK(only(normal.amax) == 3.0f);

        const Fp8QuantizeProblem zero = quantized({0.0f, -0.0f}, test);
        CHECK(only(zero.multiplier) == 1.0f);
        CHECK(only(zero.scale) == 1.0f);
        CHECK(zero.out.get(0) == 0.0);

        // So small that the quotient overflows: finite all the same.
        for (const float tiny : {1e-40f, std::numeric_limits<float>::denorm_min()}) {
            const Fp8QuantizeProblem small = quantized({tiny, 0.0f}, test);
            CHECK(only(small.multiplier) == std::numeric_limits<float>::max());
            CHECK(only(small.scale) > 0.0f);
            CHECK(std::isfinite(small.out.get(0)));
            CHECK(small.out.get(1) == 0.0);
        }

        const Fp8QuantizeProblem infinite = quantized({kInfinity, 1.0f}, test);
        CHECK(only(infinite.multiplier) == 1.0f);
        CHECK(infinite.out.get(0) == largest);
        CHECK(infinite.out.get(1) == 1.0);
        const Fp8QuantizeProblem nan = quantized({kNan, 1.0f}, test);
        CHECK(only(nan.multiplier) == 1.0f);
        CHECK(std::isnan(nan.out.get(0)));
        CHECK(nan.out.get(1) == 1.0);
    }
}

TEST_CASE("transposed codes are the codes, transposed") {
    Random random(7);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{1, 16}, {16, 1}, {37, 53}}) {
        Fp8QuantizeCase test;
        test.shape = shape;
        test.transposed = true;
        test.out_padding = 3;
        test.transposed_padding = 1;
        Fp8QuantizeProblem problem(test, random);
        problem.run_reference();
        for (std::int64_t row = 0; row < shape[0]; ++row) {
            for (std::int64_t col = 0; col < shape[1]; ++col)
                CHECK(problem.out.at({row, col}) == problem.out_transposed.at({col, row}));
        }
        CHECK(problem.out.surroundings_intact());
        CHECK(problem.out_transposed.surroundings_intact());
    }
}

TEST_CASE("each row, group and block has a scale of its own, by which its codes are made") {
    Random random(9);
    const std::pair<Fp8Granularity, std::pair<std::int64_t, std::int64_t>> parts[] = {
        {Fp8Granularity::row, {1, 300}},
        {Fp8Granularity::group, {1, 128}},
        {Fp8Granularity::block, {128, 128}}};
    for (const auto& [granularity, size] : parts) {
        for (const bool turned : {false, true}) {
            Fp8QuantizeCase test;
            test.ask_for(granularity);
            test.turned_scales = turned;
            test.shape = {150, 300};
            Fp8QuantizeProblem problem(test, random);
            // A part of zeros, and one with a NaN.
            for (std::int64_t row = 0; row < 128; ++row) {
                for (std::int64_t col = 256; col < 300; ++col)
                    problem.x.set(row * 300 + col, 0.0);
            }
            if (granularity == Fp8Granularity::row) {
                for (std::int64_t col = 0; col < 300; ++col)
                    problem.x.set(2 * 300 + col, 0.0);
            }
            problem.x.set(140 * 300 + 5, kNan);
            problem.run_reference();
            const auto [part_rows, part_cols] = size;
            for (std::int64_t down = 0; down * part_rows < 150; ++down) {
                for (std::int64_t across = 0; across * part_cols < 300; ++across) {
                    double amax = 0.0;
                    bool nan = false;
                    const auto for_part = [&](const auto& body) {
                        for (std::int64_t row = down * part_rows;
                             row < std::min<std::int64_t>(150, (down + 1) * part_rows); ++row) {
                            for (std::int64_t col = across * part_cols;
                                 col < std::min<std::int64_t>(300, (across + 1) * part_cols); ++col)
                                body(row, col);
                        }
                    };
                    for_part([&](std::int64_t row, std::int64_t col) {
                        const double x = problem.x.at({row, col});
                        nan |= std::isnan(x);
                        amax = std::max(amax, std::fabs(x));
                    });
                    const bool none = nan || amax == 0.0;
                    const float multiplier = none ? 1.0f : 448.0f / static_cast<float>(amax);
                    const double scale = problem.scale.shape().size() == 1
                                             ? problem.scale.at({down})
                                             : problem.scale.at({down, across});
                    CHECK(scale == 1.0f / multiplier);
                    for_part([&](std::int64_t row, std::int64_t col) {
                        const auto x = static_cast<float>(problem.x.at({row, col}));
                        const std::uint8_t wanted = nearest_code(x * multiplier, test.out);
                        if (std::isnan(x)) {
                            CHECK(std::isnan(problem.out.at({row, col})));
                        } else {
                            CHECK(problem.out.at({row, col}) == value_of(wanted, test.out));
                        }
                    });
                }
            }
            CHECK(problem.scale.surroundings_intact());
        }
    }
}

TEST_CASE("powers of two: the largest that saturates nothing") {
    Fp8QuantizeCase test;
    test.dynamic = test.scale = test.power_of_two = true;
    for (const auto& [amax, scale] : std::vector<std::pair<float, float>>{{448.0f, 1.0f},
                                                                          {449.0f, 2.0f},
                                                                          {447.0f, 1.0f},
                                                                          {3.0f, 0x1p-7f},
                                                                          {3.5f, 0x1p-7f},
                                                                          {3.50001f, 0x1p-6f},
                                                                          {1e-45f, 0x1p-127f},
                                                                          {3e38f, 0x1p120f},
                                                                          {0.0f, 1.0f}}) {
        const Fp8QuantizeProblem problem = quantized({0.0f, -amax}, test);
        CAPTURE(amax);
        CHECK(only(problem.scale) == scale);
        CHECK(only(problem.multiplier) == 1.0f / scale);
    }
    // Of two rows each by itself.
    Random random(1);
    Fp8QuantizeCase rows;
    rows.ask_for(Fp8Granularity::row);
    rows.power_of_two = true;
    rows.dtype = DType::fp32;
    rows.shape = {2, 2};
    Fp8QuantizeProblem problem(rows, random);
    problem.x.fill([](std::int64_t i) { return i == 0 ? 3.0 : i == 2 ? 449.0 : 1.0; });
    problem.run_reference();
    CHECK(problem.scale.at({0}) == 0x1p-7);
    CHECK(problem.scale.at({1}) == 2.0);
    CHECK(problem.out.at({0, 0}) == 384.0);
    CHECK(problem.out.at({1, 0}) == 224.0);
}

TEST_CASE("rows without columns have a scale of 1, and no columns no other") {
    Random random(1);
    Fp8QuantizeCase test;
    test.ask_for(Fp8Granularity::row);
    test.shape = {3, 0};
    Fp8QuantizeProblem problem(test, random);
    problem.run_reference();
    for (std::int64_t row = 0; row < 3; ++row)
        CHECK(problem.scale.at({row}) == 1.0);
    for (const Fp8Granularity parts : {Fp8Granularity::group, Fp8Granularity::block}) {
        test.ask_for(parts);
        Fp8QuantizeProblem none(test, random);
        none.run_reference();
        CHECK(none.scale.elements() == 0);
    }
}

TEST_CASE("an empty matrix has an amax of 0 and a dynamic multiplier of 1") {
    Random random(1);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{0, 8}, {8, 0}}) {
        Fp8QuantizeCase test;
        test.shape = shape;
        test.amax = test.dynamic = test.scale = true;
        Fp8QuantizeProblem problem(test, random);
        problem.run_reference();
        CHECK(only(problem.amax) == 0.0f);
        CHECK(only(problem.multiplier) == 1.0f);
        CHECK(only(problem.scale) == 1.0f);
    }
}

}  // namespace jitney::tests
