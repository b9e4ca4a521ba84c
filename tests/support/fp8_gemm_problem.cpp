#include "tests/support/fp8_gemm_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/arithmetic.hpp"
#include "operations/fp8_gemm/reference.hpp"

namespace jitney::tests {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_fp8(DType dtype) {
    return dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2;
}

// [rows, shift + columns]: the elements of the shift are NaN.
HostTensor matrix(DType dtype, std::int64_t rows, std::int64_t columns, const RowLayout& layout,
                  std::size_t groups = 0) {
    std::vector<std::int64_t> shape{rows, layout.shift + columns};
    std::vector<std::int64_t> padding{0, layout.padding};
    if (groups > 0) {
        shape.insert(shape.begin(), static_cast<std::int64_t>(groups));
        padding.insert(padding.begin(), 0);
    }
    HostTensor made(dtype, shape, {{}, padding});
    made.fill([](std::int64_t) { return kNan; });
    return made;
}

// The matrix behind the shift.
Tensor behind(const Tensor& tensor, const RowLayout& layout) {
    Tensor view = tensor;
    if (view.data != nullptr) {
        view.data = static_cast<std::byte*>(view.data) + layout.shift * size_of(view.dtype);
    }
    view.shape[static_cast<std::size_t>(view.ndim - 1)] -= layout.shift;
    return view;
}

void fill(HostTensor& tensor, std::int64_t shift, Random& random) {
    const std::int64_t columns = tensor.shape().back();
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        if (i % columns >= shift) tensor.set(i, random.normal());
    }
}

HostTensor number(double value) {
    HostTensor tensor(DType::fp32, {1});
    tensor.set(0, value);
    return tensor;
}

// One number a row or column, or a block of them by 128 of k. `blocks` of them lie along m or n.
HostTensor scales_of(const Fp8GemmCase& test, const ScaleLayout& layout, std::int64_t side,
                     std::int64_t blocks, std::int64_t groups) {
    if (layout.one && groups == 0) return HostTensor(DType::fp32, {1});
    std::vector<std::int64_t> shape;
    if (groups > 0) shape.push_back(groups);
    if (test.scales == kBlockScales) {
        shape.insert(shape.end(), {blocks, ceil_div(test.k, kFp8ScaleBlock)});
    } else if (!layout.one) {
        shape.push_back(side);
    }
    return HostTensor(DType::fp32, shape, groups > 0 ? Layout() : layout.memory);
}

constexpr double kLargestScale = 0.9;  // of a, and of b

std::string text_of(const char* name, const ScaleLayout& layout) {
    std::string text = std::string(", ") + name + (layout.one ? " one number" : "");
    if (!layout.memory.order.empty()) text += " turned";
    if (!layout.memory.padding.empty()) text += " padded";
    return text;
}

std::string text_of(const char* name, const RowLayout& rows) {
    if (rows.shift == 0 && rows.padding == 0) return {};
    return std::string(", ") + name + " shifted by " + std::to_string(rows.shift) + " padded by " +
           std::to_string(rows.padding);
}

// What rounding to the format may change, and one code of an FP8 more, where the sums of kernel and
// reference lie to either side of a boundary.
Tolerance rounding_of(const Fp8GemmCase& test, double sums) {
    switch (test.out) {
        case DType::fp32:
            return {2e-5 * sums + 1e-6, 1e-5};
        case DType::fp16:
            return {1e-4 * sums + 1e-4, 2e-3};
        case DType::fp8_e4m3:
            return {0x1p-9, 0.13};
        case DType::fp8_e5m2:
            return {0x1p-16, 0.26};
        default:
            return {1e-3 * sums + 1e-3, 1e-2};
    }
}

// Brings the results of a problem into the range of the output's format.
double multiplier_of(const Fp8GemmCase& test) {
    if (!is_fp8(test.out)) return 1.0;
    const double largest = test.out == DType::fp8_e4m3 ? 448.0 : 57344.0;
    return largest / (6.0 * std::sqrt(static_cast<double>(test.k) + 1.0));
}

// What 14 bits lose: up to 2^-13 of the largest, for each term, in every 32 of K. That is of
// chance, and so of the size of the square root of K, as the sums are; they are the larger, the
// later they are promoted.
Tolerance tolerance_for(const Fp8GemmCase& test) {
    const double scale = test.scales == kOneScale ? test.scale : kLargestScale * kLargestScale;
    const double sums = test.k == 0 ? 0.0 : std::sqrt(static_cast<double>(test.k)) * scale;
    Tolerance tolerance = rounding_of(test, sums);
    if (test.few_bits) {
        tolerance.absolute += (test.fast_accum && test.scales != kBlockScales ? 1.6e-2 : 4e-3) *
                              sums * multiplier_of(test);
    }
    return tolerance;
}

bool is_of_no_group(const Fp8GemmCase& test, std::int64_t row) {
    if (test.groups.empty()) return false;
    std::int64_t end = test.rows_ahead;
    for (const std::int64_t rows : test.groups)
        end += rows;
    return row < test.rows_ahead || row >= end;
}

}  // namespace

std::string Fp8GemmCase::text() const {
    std::string text = std::string(name_of(a)) + " x " + name_of(b) + " -> " + name_of(out) + ", " +
                       std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                       ", trans " + (trans_a ? "1" : "0") + (trans_b ? "1" : "0");
    if (bias) text += std::string(", bias ") + name_of(*bias);
    if (amax) text += ", amax";
    if (fast_accum) text += ", fast_accum";
    if (scales == kSideScales) text += ", scales of sides";
    if (scales == kBlockScales) text += ", scales of blocks";
    if (scales != kOneScale) text += text_of("scale_a", scale_a) + text_of("scale_b", scale_b);
    if (!groups.empty()) {
        text += ", groups of";
        for (const std::int64_t rows : groups)
            text.append(" ").append(std::to_string(rows));
        text.append(" from row ").append(std::to_string(rows_ahead));
    }
    return text + text_of("a", a_rows) + text_of("b", b_rows) + text_of("out", out_rows);
}

Fp8GemmProblem::Fp8GemmProblem(const Fp8GemmCase& problem, Random& random)
    : test(problem),
      a(matrix(test.a, test.trans_a ? test.k : test.m, test.trans_a ? test.m : test.k,
               test.a_rows)),
      b(matrix(test.b, test.trans_b ? test.n : test.k, test.trans_b ? test.k : test.n, test.b_rows,
               test.groups.size())),
      out(matrix(test.out, test.m, test.n, test.out_rows)),
      scale(number(test.scale)) {
    const auto groups = static_cast<std::int64_t>(test.groups.size());
    fill(a, test.a_rows.shift, random);
    fill(b, test.b_rows.shift, random);
    if (test.bias) {
        std::vector<std::int64_t> shape{test.n};
        if (!test.groups.empty() && !test.alike) shape.insert(shape.begin(), groups);
        bias.emplace(*test.bias, shape);
        bias->fill_normal(random);
    }
    if (is_fp8(test.out)) multiplier = number(multiplier_of(test));
    if (test.amax) amax = number(-1.0);
    if (groups > 0) {
        group_indptr.emplace(DType::int32, std::vector<std::int64_t>{groups + 1});
        std::int64_t row = test.rows_ahead;
        for (std::int64_t group = 0; group <= groups; ++group) {
            group_indptr->set(group, static_cast<double>(row));
            if (group < groups) row += test.groups[static_cast<std::size_t>(group)];
        }
    }
    if (test.scales == kOneScale) return;
    scale_a = scales_of(test, test.scale_a, test.m, test.m, 0);
    scale_b = scales_of(test, test.scale_b, test.n, ceil_div(test.n, kFp8ScaleBlock), groups);
    for (HostTensor* each : {&*scale_a, &*scale_b}) {
        // Of nothing, whatever the scale.
        if (test.k == 0) {
            each->fill([](std::int64_t i) { return i % 2 == 0 ? kNan : HUGE_VAL; });
        } else {
            each->fill_uniform(random, 0.1, kLargestScale);
        }
    }
}

Fp8GemmArgs Fp8GemmProblem::args(const Fp8GemmTensors& tensors) const {
    Fp8GemmArgs args;
    args.a = behind(tensors.a, test.a_rows);
    args.b = behind(tensors.b, test.b_rows);
    args.out = behind(tensors.out, test.out_rows);
    args.scale_a = tensors.scale_a;
    args.scale_b = tensors.scale_b;
    args.group_indptr = tensors.group_indptr;
    if (test.scales == kOneScale) args.dequant_scale = tensors.scale;
    args.bias = tensors.bias;
    args.out_multiplier = tensors.multiplier;
    args.amax = tensors.amax;
    args.trans_a = test.trans_a;
    args.trans_b = test.trans_b;
    args.fast_accum = test.fast_accum;
    return args;
}

void Fp8GemmProblem::run_reference() {
    const Fp8GemmArgs given =
        args(views_of(*this, [](HostTensor& tensor) { return tensor.view(); }));
    reference::Fp8Gemm call;
    call.a = given.a;
    call.b = given.b;
    call.trans_a = given.trans_a;
    call.trans_b = given.trans_b;
    call.scale = given.dequant_scale;
    call.scale_a = given.scale_a;
    call.scale_b = given.scale_b;
    call.group_indptr = given.group_indptr;
    call.bias = given.bias;
    call.out = given.out;
    call.multiplier = given.out_multiplier;
    call.amax = given.amax;
    reference::fp8_gemm(call);
}

std::string Fp8GemmProblem::difference(const HostTensor& actual) const {
    if (!actual.surroundings_intact()) return "what lies around the output was written";
    const Tolerance tolerance = tolerance_for(test);
    const std::int64_t columns = out.shape()[1];
    std::int64_t wrong = 0;
    std::string first;
    for (std::int64_t i = 0; i < out.elements(); ++i) {
        const double is = actual.get(i);
        const double expected = out.get(i);
        // Before each row, and in rows of no group, there is what was there: NaN.
        const bool right = i % columns < test.out_rows.shift || is_of_no_group(test, i / columns)
                               ? std::isnan(is)
                               : std::abs(is - expected) <=
                                     tolerance.absolute + tolerance.relative * std::abs(expected);
        if (right) continue;
        if (wrong++ == 0) {
            first = actual.text_of_position(i) + " is " + std::to_string(is) + " instead of " +
                    std::to_string(expected);
        }
    }
    if (wrong == 0) return {};
    return std::to_string(wrong) + " of " + std::to_string(out.elements()) +
           " elements are wrong: " + first;
}

}  // namespace jitney::tests
