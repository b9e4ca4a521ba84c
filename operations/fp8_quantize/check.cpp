#include <cstdint>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_scales.h"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/check_enum.hpp"
#include "operations/fp8_quantize/fields.hpp"
#include "operations/own_workspace.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kDims = "[..., cols]";
constexpr const char* kTransposedDims = "[cols, rows]";
constexpr const char* kNumber = "[1]";

// Codes, as a matrix.
Tensor check_codes(const Named& x, const Named& codes, Data data) {
    check_fp8(codes);
    check_same_device(x, codes);
    const Tensor matrix = as_matrix(codes);
    check_no_overlap({codes.name, matrix, codes.dims});
    check_pointer(codes, data);
    return matrix;
}

void check_one(const Named& x, const Named& number, Data data) {
    check_number(number);
    check_same_device(x, number);
    check_pointer(number, data);
}

void check_wanted(const Fp8QuantizeArgs& args) {
    const bool codes = args.out || args.out_transposed;
    if (!codes && args.dynamic) {
        refuse("dynamic scaling needs out or out_transposed, to whose format it scales: give one");
    }
    if (!codes && !args.amax) {
        refuse("neither out nor out_transposed nor amax was given: give what shall be computed");
    }
    if (!codes && (args.multiplier || args.scale)) {
        refuse(
            "{} was given without out and out_transposed: leave it out where amax alone is "
            "wanted",
            args.multiplier ? "multiplier" : "scale");
    }
}

constexpr std::initializer_list<Enumerator<Fp8Granularity>> kGranularities = {
    {Fp8Granularity::tensor, "tensor"},
    {Fp8Granularity::row, "row"},
    {Fp8Granularity::group, "group"},
    {Fp8Granularity::block, "block"}};

// What makes several scales makes nothing else but the codes that have them.
void check_wanted_of_parts(const Fp8QuantizeArgs& args) {
    if (!args.dynamic) {
        refuse(
            "granularity asks for several scales, which are made of x itself: set dynamic, or take "
            "the tensor's granularity");
    }
    if (!args.scale) {
        refuse(
            "granularity asks for several scales, and scale was not given: nobody could read "
            "the codes without them, so give it");
    }
    if (!args.out) {
        refuse(
            "granularity asks for several scales, and out was not given: give it, the codes "
            "that have them");
    }
    const char* const other = args.out_transposed ? "out_transposed"
                              : args.multiplier   ? "multiplier"
                              : args.amax         ? "amax"
                                                  : nullptr;
    if (other != nullptr) {
        refuse("{} was given where granularity asks for several scales: leave it out", other);
    }
}

// fp32 of the shape that the granularity asks for, whatever its strides.
void check_scales(const Named& x, const Tensor& matrix, const Fp8QuantizeArgs& args, Data data) {
    const Tensor& scale = *args.scale;
    const std::int64_t groups = ceil_div(matrix.shape[1], std::int64_t{kFp8ScaleCols});
    const std::int64_t blocks = ceil_div(matrix.shape[0], std::int64_t{kFp8ScaleCols});
    Named named{"scale", scale, "[rows] or [rows, 1]"};
    check_dtype(named, DType::fp32);
    switch (args.granularity) {
        case Fp8Granularity::row:
            if (scale.ndim == 2) {
                check_shape(named, {matrix.shape[0], 1});
            } else {
                check_shape(named, {matrix.shape[0]});
            }
            break;
        case Fp8Granularity::group:
            named.dims = "[rows, ceil(cols / 128)]";
            check_shape(named, {matrix.shape[0], groups});
            break;
        default:
            named.dims = "[ceil(rows / 128), ceil(cols / 128)]";
            check_shape(named, {blocks, groups});
            break;
    }
    check_reach(named);
    check_same_device(x, named);
    check_no_overlap(named);
    check_pointer(named, data);
}

bool is_dense(const Tensor& matrix) noexcept {
    return matrix.shape[0] <= 1 || matrix.strides[0] == matrix.shape[1];
}

bool begins_at(const Tensor& matrix, std::uint64_t bytes) noexcept {
    return (reinterpret_cast<std::uintptr_t>(matrix.data) & (bytes - 1)) == 0;
}

bool rows_begin_at(const Tensor& matrix, std::uint64_t bytes) noexcept {
    const auto step = static_cast<std::uint64_t>(matrix.strides[0]) *
                      static_cast<std::uint64_t>(size_of(matrix.dtype));
    return begins_at(matrix, bytes) && (matrix.shape[0] <= 1 || (step & (bytes - 1)) == 0);
}

}  // namespace

policy::Fp8QuantizeProblem check(const Fp8QuantizeArgs& args, Data data) {
    const Named x{"x", args.x, kDims};
    check_floating(x);
    const Tensor matrix = as_matrix(x);
    check_pointer(x, data);
    std::optional<Tensor> codes;
    if (args.out) {
        const Named out{"out", *args.out, kDims};
        codes = check_codes(x, out, data);
        check_same_shape(x, out);
    }
    std::optional<Tensor> transposed_codes;
    if (args.out_transposed) {
        const Named transposed{"out_transposed", *args.out_transposed, kTransposedDims};
        transposed_codes = check_codes(x, transposed, data);
        check_shape(transposed, {matrix.shape[1], matrix.shape[0]});
        if (args.out) check_same_dtype({"out", *args.out, kDims}, transposed);
    }
    check_enum<Fp8Granularity>("granularity", args.granularity, kGranularities);
    const bool parts = args.granularity != Fp8Granularity::tensor;
    if (parts) check_wanted_of_parts(args);
    check_wanted(args);
    if (args.power_of_two && !args.dynamic) {
        refuse(
            "power_of_two rounds the multipliers of dynamic scaling: set dynamic, or leave it "
            "out");
    }
    if (args.multiplier) check_one(x, {"multiplier", *args.multiplier, kNumber}, data);
    if (parts) {
        check_scales(x, matrix, args, data);
    } else if (args.scale) {
        check_one(x, {"scale", *args.scale, kNumber}, data);
    }
    if (args.amax) check_one(x, {"amax", *args.amax, kNumber}, data);
    if (data != Data::absent) {
        check_given(args.workspace);
        check_memory(args);
    }

    policy::Fp8QuantizeProblem problem;
    problem.format = static_cast<int>(args.x.dtype);
    problem.codes = (args.out ? kRowCodes : 0) | (args.out_transposed ? kTransposedCodes : 0);
    if (problem.codes != kNoCodes) {
        problem.out = static_cast<int>(args.out ? args.out->dtype : args.out_transposed->dtype);
    }
    problem.amax = args.amax.has_value() || args.dynamic;
    problem.dynamic = args.dynamic;
    problem.rows = matrix.shape[0];
    problem.cols = matrix.shape[1];
    problem.dense = is_dense(matrix) && (!codes || is_dense(*codes));
    problem.first_row = {begins_at(matrix, 16), !codes || begins_at(*codes, 8)};
    problem.every_row = {rows_begin_at(matrix, 16), !codes || rows_begin_at(*codes, 8)};
    problem.transposed_rows = !transposed_codes || rows_begin_at(*transposed_codes, 16);
    problem.granularity = static_cast<int>(args.granularity);
    // Rows without columns have scales, too.
    problem.inverts = (args.scale && args.multiplier && !args.dynamic) ||
                      (args.granularity == Fp8Granularity::row && problem.rows != 0);
    problem.keeps_multiplier = args.multiplier.has_value();
    return problem;
}

}  // namespace jitney::checks
