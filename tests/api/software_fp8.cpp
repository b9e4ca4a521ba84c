// Casts to FP8, products, and sums of columns.
#include "tests/api/software_launches.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/scale.h"
#include "operations/fp8_gemm/reference.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "operations/fp8_quantize/reference.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

// Rows [first, first + rows) of the matrix.
void run_quantize_rows(std::string_view image, const Fp8QuantizeParams& p, std::int64_t first,
                       std::int64_t rows, std::int64_t cols, const Tensor* amax) {
    const auto out = static_cast<DType>(constant(image, "out"));
    const int codes = constant(image, "codes");
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const auto* x = static_cast<const std::byte*>(p.x) + first * p.x_stride * size_of(dtype);
    reference::Fp8Quantize call;
    call.x = tensor_of(x, dtype, {rows, cols}, {p.x_stride, 1});
    if ((codes & kRowCodes) != 0) {
        call.out =
            tensor_of(p.codes + first * p.codes_stride, out, {rows, cols}, {p.codes_stride, 1});
    }
    if ((codes & kTransposedCodes) != 0) {
        call.out_transposed =
            tensor_of(p.transposed + first, out, {cols, rows}, {p.transposed_stride, 1});
    }
    call.multiplier = number_of(p.multiplier);
    call.scale = codes != kNoCodes ? number_of(p.scale) : std::nullopt;
    if (amax != nullptr) call.amax = *amax;
    reference::fp8_quantize(call);
}

}  // namespace

void run_fp8_quantize(std::string_view image, const Fp8QuantizeParams& p) {
    const bool wants_amax = constant(image, "amax") != 0;
    if (wants_amax != (p.counters != nullptr)) throw std::logic_error("counters come with amax");
    float of_rows = 0;
    float of_last = 0;
    const Tensor rows_amax = tensor_of(&of_rows, DType::fp32, {1}, {1});
    const Tensor last_amax = tensor_of(&of_last, DType::fp32, {1}, {1});
    run_quantize_rows(image, p, 0, p.rows - 1, p.cols, &rows_amax);
    run_quantize_rows(image, p, p.rows - 1, 1, p.last_cols, &last_amax);
    if (!wants_amax) return;
    const float amax = std::max(of_rows, of_last);
    if (p.amax != nullptr) *p.amax = amax;
    if (p.new_multiplier == nullptr) return;
    *p.new_multiplier = dynamic_fp8_multiplier(amax, p.largest);
    if (p.scale != nullptr) *p.scale = fp8_scale(*p.new_multiplier);
}

void run_fp8_gemm(std::string_view image, const Fp8GemmParams& p) {
    if ((p.splits > 1) != (p.partials != nullptr)) throw std::logic_error("splits leave parts");
    if ((p.amax != nullptr) != (p.amax_counters != nullptr)) {
        throw std::logic_error("amax comes with counters");
    }
    const auto matrix = [&](const char* format, const Fp8GemmOperand& operand, int rows, int cols) {
        return tensor_of(operand.data, static_cast<DType>(constant(image, format)), {rows, cols},
                         {operand.stride, 1});
    };
    reference::Fp8Gemm call;
    call.trans_a = constant(image, "trans_a") != 0;
    call.trans_b = constant(image, "trans_b") != 0;
    call.a = matrix("a", p.a, call.trans_a ? p.k : p.m, call.trans_a ? p.m : p.k);
    call.b = matrix("b", p.b, call.trans_b ? p.n : p.k, call.trans_b ? p.k : p.n);
    call.out =
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.m, p.n}, {p.out_stride, 1});
    call.scale = *number_of(p.scale);
    if (p.bias != nullptr) {
        call.bias = tensor_of(p.bias, static_cast<DType>(p.bias_format), {p.n}, {1});
    }
    call.multiplier = number_of(p.multiplier);
    call.amax = number_of(p.amax);
    reference::fp8_gemm(call);
}

void run_column_sums(std::string_view image, const ColumnSumsParams& p) {
    if (p.splits > 1 && (p.parts == nullptr || p.arrived == nullptr)) {
        throw std::logic_error("splits need memory to meet in");
    }
    reference::column_sums(
        tensor_of(p.x, static_cast<DType>(constant(image, "format")), {p.rows, p.cols},
                  {p.x_stride, 1}),
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.cols}, {1}));
}

}  // namespace jitney::tests
