#include "operations/gated_activation/reference.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include "operations/reference/check.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/row_results.hpp"

namespace jitney::reference {

namespace {

double activated(Activation activation, double x) {
    switch (activation) {
        case Activation::silu:
            return x / (1.0 + std::exp(-x));
        case Activation::gelu:
            return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2.0);
        case Activation::gelu_tanh: {
            const double z = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
            return 0.5 * x * (1.0 + std::tanh(z));
        }
        case Activation::relu2:
            break;
    }
    return x <= 0.0 ? 0.0 : x * x;
}

// Columns [first, first + d) of a matrix.
Tensor columns(const Tensor& matrix, std::int64_t first, std::int64_t d) {
    Tensor part = matrix;
    part.shape[1] = d;
    const std::int64_t offset = first * matrix.strides[1] * size_of(matrix.dtype);
    part.data = static_cast<std::byte*>(matrix.data) + offset;
    return part;
}

}  // namespace

void gated_activation(const GatedActivation& call) {
    const Tensor inputs = matrix_of(call.gate, "gate");
    require(call.up.has_value() || inputs.shape[1] % 2 == 0,
            "gate has an odd number of columns; without up it must be [..., 2d]");
    const std::int64_t rows = inputs.shape[0];
    const std::int64_t d = call.up ? inputs.shape[1] : inputs.shape[1] / 2;
    const Tensor gate = columns(inputs, 0, d);
    const Tensor up = call.up ? matrix_of(*call.up, "up") : columns(inputs, d, d);
    require_shape(up, "up", {rows, d});
    const RowResults results{matrix_of(call.out, "out"), call.multiplier, call.scale};
    require_results(results, rows, d);
    parallel_for(rows, [&](std::int64_t row) {
        std::vector<double> values = row_values(gate, row);
        const std::vector<double> ups = row_values(up, row);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = activated(call.activation, values[i]) * ups[i];
        write_results(results, row, values);
    });
}

}  // namespace jitney::reference
