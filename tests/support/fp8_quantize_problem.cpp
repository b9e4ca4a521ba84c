#include "tests/support/fp8_quantize_problem.hpp"
#include "kernel_sources/fp8/state.h"

#include <cmath>
#include <cstring>

#include "operations/fp8_quantize/reference.hpp"

namespace jitney::tests {

namespace {

Layout padded(std::size_t dims, std::int64_t padding) {
    std::vector<std::int64_t> each(dims, 0);
    each.back() = padding;
    return {{}, each};
}

// [rows, cols]; a single number stays as it is.
Tensor matrix_of(HostTensor& tensor) {
    Tensor view = tensor.view();
    const auto last = static_cast<std::size_t>(view.ndim - 1);
    Tensor matrix = view;
    matrix.ndim = 2;
    matrix.shape = {1, view.shape[last]};
    matrix.strides = {last > 0 ? view.strides[last - 1] : view.shape[last], 1};
    for (std::size_t i = 0; i < last; ++i)
        matrix.shape[0] *= view.shape[i];
    return matrix;
}

// With a gap between rows, or between columns.
Layout scale_layout(const Fp8QuantizeCase& test) {
    if (test.scale_shape().size() != 2) return {};
    if (test.turned_scales) return {{1, 0}, {3, 0}};
    return {{}, {0, 1}};
}

double some_number(Random& random) {
    const double magnitude =
        std::ldexp(1.0 + random.uniform(0.0, 1.0), static_cast<int>(random.integer(-20, 17)));
    const double eighths = std::ldexp(static_cast<double>(random.integer(0, 31)),
                                      static_cast<int>(random.integer(-13, 13)));
    const double x = random.chance(0.5) ? magnitude : eighths;
    return random.chance(0.5) ? x : -x;
}

std::string difference_of(const char* name, const HostTensor& actual, const HostTensor& expected) {
    const std::int64_t count = differing(actual, expected);
    if (count == 0 && actual.surroundings_intact()) return {};
    if (count == 0) return std::string(name) + ": its surroundings were written";
    for (std::int64_t i = 0; i < actual.elements(); ++i) {
        const double a = actual.get(i);
        const double e = expected.get(i);
        if (a == e || (std::isnan(a) && std::isnan(e))) continue;
        return std::string(name) + ": " + std::to_string(count) + " of " +
               std::to_string(actual.elements()) + " differ, first " + actual.text_of_position(i) +
               ": " + std::to_string(a) + " instead of " + std::to_string(e);
    }
    return std::string(name) + ": a zero has the wrong sign";
}

}  // namespace

std::int64_t Fp8QuantizeCase::row_count() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i)
        count *= shape[i];
    return count;
}

void Fp8QuantizeCase::ask_for(Fp8Granularity parts) {
    granularity = parts;
    dynamic = scale = rows = true;
    transposed = amax = false;
    multiplier.reset();
}

std::vector<std::int64_t> Fp8QuantizeCase::scale_shape() const {
    const std::int64_t groups = (cols() + 127) / 128;
    switch (granularity) {
        case Fp8Granularity::tensor:
            return {1};
        case Fp8Granularity::row:
            if (turned_scales) return {row_count(), 1};
            return {row_count()};
        case Fp8Granularity::group:
            return {row_count(), groups};
        case Fp8Granularity::block:
            break;
    }
    return {(row_count() + 127) / 128, groups};
}

std::string Fp8QuantizeCase::text() const {
    std::string text = "dtype " + std::to_string(static_cast<int>(dtype)) +
                       (out == DType::fp8_e4m3 ? " to e4m3 [" : " to e5m2 [");
    for (const std::int64_t size : shape)
        text += std::to_string(size) + (&size == &shape.back() ? "]" : ", ");
    if (rows) text += " rows";
    if (transposed) text += " transposed";
    if (amax) text += " amax";
    if (dynamic) text += " dynamic";
    if (scale) text += " scale";
    if (granularity != Fp8Granularity::tensor) {
        text += " of granularity " + std::to_string(static_cast<int>(granularity));
    }
    if (turned_scales) text += " turned";
    if (power_of_two) text += " of powers of two";
    if (state) text += ", state " + std::to_string(*state);
    if (multiplier) text += ", multiplier " + std::to_string(*multiplier);
    return text + ", padding " + std::to_string(x_padding) + " " + std::to_string(out_padding) +
           " " + std::to_string(transposed_padding);
}

Fp8QuantizeProblem::Fp8QuantizeProblem(const Fp8QuantizeCase& problem, Random& random)
    : test(problem),
      x(test.dtype, test.shape, padded(test.shape.size(), test.x_padding)),
      out(test.out, test.shape, padded(test.shape.size(), test.out_padding)),
      out_transposed(test.out, {test.cols(), test.row_count()}, padded(2, test.transposed_padding)),
      multiplier(DType::fp32, {1}),
      scale(DType::fp32, test.scale_shape(), scale_layout(test)),
      amax(DType::fp32, {1}),
      state(DType::fp32, {kFp8StateHistory}) {
    if (test.state) state.set(kFp8StateMultiplier, *test.state);
    x.fill([&](std::int64_t) { return some_number(random); });
    if (test.multiplier && !test.dynamic) multiplier.set(0, *test.multiplier);
}

void Fp8QuantizeProblem::run_reference() {
    const Fp8QuantizeArgs call = args([this](HostTensor& tensor) {
        return &tensor == &scale ? tensor.view() : matrix_of(tensor);
    });
    reference::fp8_quantize(
        {call.x, call.out, call.out_transposed, call.multiplier, call.scale, call.amax,
         call.dynamic, static_cast<reference::Fp8Granularity>(call.granularity), call.power_of_two,
         test.state ? static_cast<float*>(state.view().data) : nullptr});
}

std::string Fp8QuantizeProblem::difference(const Fp8QuantizeProblem& expected) const {
    std::string text = difference_of("out", out, expected.out);
    if (text.empty()) {
        text = difference_of("out_transposed", out_transposed, expected.out_transposed);
    }
    if (text.empty()) text = difference_of("multiplier", multiplier, expected.multiplier);
    if (text.empty()) text = difference_of("scale", scale, expected.scale);
    if (text.empty()) text = difference_of("amax", amax, expected.amax);
    if (text.empty()) text = difference_of("state", state, expected.state);
    return text;
}

HostTensor every_number(DType dtype) {
    HostTensor all(dtype, {65536});
    auto* first = static_cast<std::byte*>(all.view().data);
    for (unsigned bits = 0; bits < 65536; ++bits) {
        const auto element = static_cast<std::uint16_t>(bits);
        std::memcpy(first + 2 * bits, &element, 2);
    }
    return all;
}

std::int64_t differing(const HostTensor& actual, const HostTensor& expected) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < actual.elements(); ++i) {
        const double a = actual.get(i);
        const double e = expected.get(i);
        const bool equal =
            std::isnan(a) ? std::isnan(e) : a == e && std::signbit(a) == std::signbit(e);
        count += equal ? 0 : 1;
    }
    return count;
}

}  // namespace jitney::tests
