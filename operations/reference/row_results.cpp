#include "operations/reference/row_results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_sources/fp8/scale.h"
#include "operations/reference/check.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

Row row_of_matrix(const Tensor& matrix, std::int64_t row) {
    return row_of(matrix, row * matrix.strides[0], 1);
}

float* number(const Tensor& tensor, std::int64_t index) {
    return static_cast<float*>(tensor.data) + index * tensor.strides[0];
}

// One NaN makes it NaN.
float amax_of(const std::vector<double>& values) {
    double amax = 0.0;
    for (const double value : values) {
        if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
        amax = std::max(amax, std::abs(value));
    }
    return static_cast<float>(amax);
}

}  // namespace

Tensor matrix_of(const Tensor& tensor, const std::string& name) {
    require_host(tensor, name);
    require(tensor.ndim >= 1, name + " has no dimensions; it must be [..., d]");
    const auto last = static_cast<std::size_t>(tensor.ndim - 1);
    Tensor matrix = tensor;
    matrix.ndim = 2;
    matrix.shape = {1, tensor.shape[last]};
    matrix.strides = {tensor.shape[last], tensor.strides[last]};
    for (std::size_t i = last; i-- > 0;) {
        const std::int64_t size = tensor.shape[i];
        if (matrix.shape[0] == 1) {
            if (size != 1) matrix.strides[0] = tensor.strides[i];
        } else {
            require(size <= 1 || tensor.strides[i] == matrix.shape[0] * matrix.strides[0],
                    name + " has rows that do not lie in one stride");
        }
        matrix.shape[0] *= size;
    }
    return matrix;
}

std::vector<double> row_values(const Tensor& matrix, std::int64_t row) {
    std::vector<double> values(static_cast<std::size_t>(matrix.shape[1]));
    read_row(row_of_matrix(matrix, row), matrix.shape[1], values.data());
    return values;
}

void write_values(const Tensor& matrix, std::int64_t row, const std::vector<double>& values) {
    write_row(row_of_matrix(matrix, row), matrix.shape[1], values.data());
}

void require_results(const RowResults& results, std::int64_t rows, std::int64_t d) {
    require_shape(results.out, "out", {rows, d});
    const bool codes = results.out.dtype == DType::fp8_e4m3;
    require(!codes || results.multiplier.has_value() != results.scale.has_value(),
            "codes need either a multiplier or a scale a row");
    if (results.scale) require_shape(*results.scale, "scale", {rows});
}

void write_results(const RowResults& results, std::int64_t row, const std::vector<double>& values) {
    if (results.out.dtype != DType::fp8_e4m3) return write_values(results.out, row, values);
    float multiplier = 1.0F;
    if (results.multiplier) {
        multiplier = *static_cast<const float*>(results.multiplier->data);
    } else {
        multiplier = dynamic_fp8_multiplier(amax_of(values), kE4m3Largest);
        *number(*results.scale, row) = fp8_scale(multiplier);
    }
    // As the kernels do: rounded to fp32, multiplied, and cast.
    std::vector<double> scaled(values.size());
    std::transform(values.begin(), values.end(), scaled.begin(), [multiplier](double value) {
        return static_cast<double>(static_cast<float>(value) * multiplier);
    });
    write_values(results.out, row, scaled);
}

}  // namespace jitney::reference
