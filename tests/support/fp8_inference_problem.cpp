#include "tests/support/fp8_inference_problem.hpp"

#include <algorithm>
#include <cmath>

#include "operations/reference/numeric.hpp"

namespace jitney::tests {

namespace {

Layout padded(std::size_t dims, std::int64_t padding) {
    std::vector<std::int64_t> each(dims, 0);
    each.back() = padding;
    return {{}, each};
}

std::int64_t blocks_of(std::int64_t size) {
    return (size + 127) / 128;
}

std::vector<std::int64_t> scale_shape(const Fp8InferenceCase& test) {
    switch (test.scales) {
        case WeightScales::one:
            return {1};
        case WeightScales::channels:
            return {test.out_features};
        case WeightScales::column:
            return {test.out_features, 1};
        case WeightScales::blocks:
            break;
    }
    return {blocks_of(test.out_features), blocks_of(test.in_features())};
}

std::vector<std::int64_t> y_shape(const Fp8InferenceCase& test) {
    std::vector<std::int64_t> shape = test.shape;
    shape.back() = test.out_features;
    return shape;
}

// What one of x becomes by a multiplier, saturating, and what its code stands for.
double cast(double x, float multiplier) {
    return reference::from_e4m3(reference::to_e4m3(static_cast<float>(x) * multiplier));
}

float multiplier_of(double amax) {
    return amax > 0.0 ? 448.0F / static_cast<float>(amax) : 1.0F;
}

// A step of numbers of that dtype about 1.
double step_of(DType dtype) {
    if (dtype == DType::bf16) return 0x1p-8;
    return dtype == DType::fp16 ? 0x1p-11 : 0x1p-21;
}

}  // namespace

std::int64_t Fp8InferenceCase::rows() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i)
        count *= shape[i];
    return count;
}

std::string Fp8InferenceCase::text() const {
    std::string text = "x [";
    for (const std::int64_t size : shape)
        text += std::to_string(size) + ", ";
    return text + "to " + std::to_string(out_features) + "], dtypes " +
           std::to_string(static_cast<int>(dtype)) + " " +
           std::to_string(static_cast<int>(weight)) + " " + std::to_string(static_cast<int>(out)) +
           ", scales " + std::to_string(static_cast<int>(scales)) + (fixed ? " fixed" : "") +
           (bias ? " bias" : "") + (fast_accum ? " fast" : "") + ", padding " +
           std::to_string(x_padding) + " " + std::to_string(weight_padding) + " " +
           std::to_string(y_padding);
}

Fp8InferenceCase random_inference_case(Random& random, std::int64_t most_rows,
                                       std::int64_t most_features) {
    Fp8InferenceCase test;
    test.dtype = static_cast<DType>(random.integer(0, 2));
    test.out = static_cast<DType>(random.integer(0, 2));
    test.weight = random.chance(0.8) ? DType::fp8_e4m3 : DType::fp8_e5m2;
    test.scales = static_cast<WeightScales>(random.integer(0, 3));
    test.fixed = random.chance(0.25);
    test.bias = random.chance(0.5);
    test.bias_dtype = random.chance(0.5) ? DType::bf16 : DType::fp32;
    const std::int64_t step = random.chance(0.6) ? 16 : 1;
    test.shape = {random.integer(1, most_rows), step * random.integer(1, most_features / step)};
    if (random.chance(0.2)) test.shape.insert(test.shape.begin(), 2);
    test.out_features = step * random.integer(1, most_features / step);
    if (random.chance(0.3)) test.x_padding = step * random.integer(0, 2);
    if (random.chance(0.3)) test.weight_padding = step * random.integer(0, 2);
    if (random.chance(0.3)) test.y_padding = step * random.integer(0, 2);
    return test;
}

Fp8InferenceProblem::Fp8InferenceProblem(const Fp8InferenceCase& problem, Random& random)
    : test(problem),
      x(test.dtype, test.shape, padded(test.shape.size(), test.x_padding)),
      weight(test.weight, {test.out_features, test.in_features()}, padded(2, test.weight_padding)),
      weight_scale(DType::fp32, scale_shape(test)),
      x_scale(DType::fp32, {1}),
      bias(test.bias_dtype, {test.out_features}),
      y(test.out, y_shape(test), padded(test.shape.size(), test.y_padding)) {
    std::vector<double> sizes;
    for (std::int64_t row = 0; row < test.rows(); ++row)
        sizes.push_back(std::ldexp(1.0, static_cast<int>(random.integer(-4, 4))));
    const std::int64_t cols = std::max<std::int64_t>(test.in_features(), 1);
    x.fill([&](std::int64_t i) {
        return random.uniform(-1.0, 1.0) * sizes[static_cast<std::size_t>(i / cols)];
    });
    weight.fill([&](std::int64_t) { return random.uniform(-4.0, 4.0); });
    weight_scale.fill([&](std::int64_t) { return random.uniform(0.01, 0.1); });
    x_scale.set(0, 0.04);
    bias.fill([&](std::int64_t) { return random.uniform(-1.0, 1.0); });
}

double Fp8InferenceProblem::error(Sums sums) const {
    const std::int64_t rows = test.rows();
    const std::int64_t in = test.in_features();
    const std::int64_t across = blocks_of(in);
    double worst = 0.0;
    std::vector<double> values(static_cast<std::size_t>(in));
    for (std::int64_t row = 0; row < rows; ++row) {
        // Parts of the row that share a scale.
        const std::int64_t part =
            test.scales == WeightScales::blocks ? 128 : std::max(in, INT64_C(1));
        for (std::int64_t first = 0; first < in; first += part) {
            const std::int64_t end = std::min(in, first + part);
            double amax = 0.0;
            for (std::int64_t i = first; i < end; ++i)
                amax = std::max(amax, std::fabs(x.get(row * in + i)));
            const float multiplier =
                test.fixed ? 1.0F / static_cast<float>(x_scale.get(0)) : multiplier_of(amax);
            for (std::int64_t i = first; i < end; ++i) {
                values[static_cast<std::size_t>(i)] =
                    cast(x.get(row * in + i), multiplier) / static_cast<double>(multiplier);
            }
        }
        for (std::int64_t o = 0; o < test.out_features; ++o) {
            double sum = test.bias ? bias.get(o) : 0.0;
            double size = std::fabs(sum);
            double products = 0.0;
            double largest = 0.0;
            for (std::int64_t i = 0; i < in; ++i) {
                std::int64_t at = 0;
                if (test.scales == WeightScales::blocks) {
                    at = o / 128 * across + i / 128;
                } else if (test.scales != WeightScales::one) {
                    at = o;
                }
                const double product = values[static_cast<std::size_t>(i)] *
                                       weight.get(o * in + i) * weight_scale.get(at);
                sum += product;
                size += std::fabs(product);
                products += product;
                largest = std::max({largest, std::fabs(product), std::fabs(products)});
            }
            const double actual = y.get(row * test.out_features + o);
            double allowed = step_of(test.out) * std::fabs(sum) +
                             (test.fast_accum ? 0x1p-10 : 0x1p-13) * size + 1e-30;
            if (sums == Sums::of_14_bits)
                allowed += 4.0 * std::sqrt(static_cast<double>(in)) * 0x1p-13 * largest;
            if (!(std::fabs(actual - sum) <= allowed * 1e6)) return 1e6;  // NaN, too
            worst = std::max(worst, std::fabs(actual - sum) / allowed);
        }
    }
    return worst;
}

}  // namespace jitney::tests
