#include <cmath>
#include <limits>

#include "kernel_sources/norm/row_shape.h"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/refuse.hpp"
#include "operations/rms_norm/fields.hpp"
#include "operations/row_results.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kDims = "[..., d]";
constexpr const char* kVector = "[d]";
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

void check_vector(const Named& x, const Named& vector, std::int64_t d, Data data) {
    check_floating(vector);
    check_same_device(x, vector);
    check_sizes(vector, 1);
    check_strides(vector);
    check_shape(vector, {d});
    check_pointer(vector, data);
}

// The matrix of a tensor that has x's shape.
Tensor check_like(const Named& x, const Named& other, Data data) {
    check_same_shape(x, other);
    return check_rows(x, other, data);
}

void check_numbers(const RmsNormArgs& args) {
    if (args.eps && (!std::isfinite(*args.eps) || *args.eps < 0)) {
        refuse("eps is {}; it must be finite and not negative, such as 1e-6", *args.eps);
    }
    if (args.residual.has_value() != args.sum.has_value()) {
        refuse("{} was given without {}; give both or neither", args.residual ? "residual" : "sum",
               args.residual ? "sum" : "residual");
    }
    if (args.one_plus_weight && !args.weight) {
        refuse("one_plus_weight is set, and there is no weight: give one, or leave it unset");
    }
    if (args.bias && !args.weight) {
        refuse("bias was given without weight: give a weight too, of ones where none is meant");
    }
}

}  // namespace

policy::RmsNormProblem check(const RmsNormArgs& args, Data data) {
    const Named x{"x", args.x, kDims};
    check_floating(x);
    const Tensor x_rows = as_matrix(x);
    check_pointer(x, data);
    const std::int64_t d = x_rows.shape[1];
    if (d < 1 || d > kMaxInt) {
        refuse("x has the shape {}, rows of {} elements; they must have from 1 to {}",
               shape_text(args.x), d, kMaxInt);
    }
    check_numbers(args);
    policy::RmsNormProblem problem;
    problem.format = static_cast<int>(args.x.dtype);
    problem.rows = x_rows.shape[0];
    problem.d = static_cast<int>(d);
    problem.aligned = is_aligned(x_rows);
    const auto add = [&](const Tensor& rows) {
        problem.aligned = problem.aligned && is_aligned(rows);
    };
    if (args.residual) {
        problem.residual = true;
        const Named residual{"residual", *args.residual, kDims};
        const Named sum{"sum", *args.sum, kDims};
        const Tensor residual_rows = check_like(x, residual, data);
        const Tensor sum_rows = check_like(x, sum, data);
        check_no_overlap({sum.name, sum_rows, kDims});
        if (data != Data::absent) check_in_place_rows(sum, sum_rows, residual, residual_rows);
        add(residual_rows);
        add(sum_rows);
    }
    problem.weight = kNoWeight;
    if (args.weight) {
        const Named weight{"weight", *args.weight, kVector};
        check_vector(x, weight, d, data);
        problem.weight = static_cast<int>(args.weight->dtype);
        problem.one_plus = args.one_plus_weight;
        add(*args.weight);
    }
    if (args.bias) {
        const Named bias{"bias", *args.bias, kVector};
        check_vector(x, bias, d, data);
        check_same_dtype({"weight", *args.weight, kVector}, bias);
        problem.bias = true;
        add(*args.bias);
    }
    problem.center = args.subtract_mean;
    const Named out{"out", args.out, kDims};
    check_same_shape(x, out);
    problem.result = check_results(x, {args.out, args.multiplier, args.scale}, problem.rows, data);
    const Tensor out_rows = as_matrix(out);
    check_no_overlap({out.name, out_rows, kDims});
    add(out_rows);
    if (data != Data::absent) {
        check_in_place_rows(out, out_rows, x, x_rows);
        check_memory(args);
    }
    return problem;
}

}  // namespace jitney::checks
