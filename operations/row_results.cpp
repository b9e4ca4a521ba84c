#include "operations/row_results.hpp"

#include "kernel_sources/norm/row_shape.h"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

void check_present(const Named& x, const Named& tensor, Data data) {
    check_same_device(x, tensor);
    check_pointer(tensor, data);
}

}  // namespace

int check_results(const Named& x, const RowResults& results, std::int64_t rows, Data data) {
    const Tensor& out = results.out;
    if (out.dtype != x.tensor.dtype && out.dtype != DType::fp8_e4m3) {
        refuse("out has the dtype {}; it must be {}, as {}, or fp8_e4m3", name_of(out.dtype),
               name_of(x.tensor.dtype), x.name);
    }
    check_present(x, {"out", out, "[..., d]"}, data);
    const bool codes = out.dtype == DType::fp8_e4m3;
    const std::optional<Tensor>& multiplier = results.multiplier;
    const std::optional<Tensor>& scale = results.scale;
    if (!codes && (multiplier || scale)) {
        refuse("{} was given, and out has the dtype {}: leave it out, or give an out in fp8_e4m3",
               multiplier ? "multiplier" : "scale", name_of(out.dtype));
    }
    if (codes && multiplier.has_value() == scale.has_value()) {
        refuse(
            "out is in fp8_e4m3, and {} of multiplier and scale was given: give multiplier, which "
            "the codes are made with, or scale, which receives each row's",
            multiplier ? "each" : "neither");
    }
    if (multiplier) {
        const Named number{"multiplier", *multiplier, "[1]"};
        check_number(number);
        check_present(x, number, data);
        return kScaledCodes;
    }
    if (!scale) return kPlainResult;
    const Named scales{"scale", *scale, "[rows]"};
    check_dtype(scales, DType::fp32);
    check_sizes(scales, 1);
    check_strides(scales);
    check_shape(scales, {rows});
    check_present(x, scales, data);
    return kRowScaledCodes;
}

Tensor check_rows(const Named& x, const Named& other, Data data) {
    check_same_dtype(x, other);
    check_present(x, other, data);
    return as_matrix(other);
}

void check_in_place_rows(const Named& out, const Tensor& out_rows, const Named& x,
                         const Tensor& x_rows) {
    if (out.tensor.data != x.tensor.data || out.tensor.data == nullptr || is_empty(out_rows)) {
        return;
    }
    if (out_rows.dtype != x_rows.dtype || out_rows.shape[1] != x_rows.shape[1]) {
        refuse(
            "{} begins where {} does, and is {} {} where that is {} {}: give it memory of its own",
            out.name, x.name, name_of(out_rows.dtype), shape_text(out.tensor),
            name_of(x_rows.dtype), shape_text(x.tensor));
    }
    if (x_rows.shape[0] > 1 && out_rows.strides[0] != x_rows.strides[0]) {
        refuse(
            "{} begins where {} does, and their rows are {} and {} elements apart: make them "
            "equal, to work in place, or give {} memory of its own",
            out.name, x.name, out_rows.strides[0], x_rows.strides[0], out.name);
    }
}

std::int64_t row_stride(const Tensor& tensor) noexcept {
    return as_matrix({"", tensor, ""}).strides[0];
}

}  // namespace jitney::checks
