#include "operations/rms_norm/reference.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "operations/reference/check.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/row_results.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

// A vector of d numbers, each `offset` more; all `otherwise` where there is none.
std::vector<double> vector_of(const std::optional<Tensor>& tensor, const char* name, std::int64_t d,
                              double offset, double otherwise) {
    std::vector<double> values(static_cast<std::size_t>(d), otherwise);
    if (!tensor) return values;
    require_host(*tensor, name);
    require_shape(*tensor, name, {d});
    read_row(row_of(*tensor, 0, 0), d, values.data());
    for (double& value : values)
        value += offset;
    return values;
}

double mean_square(const std::vector<double>& values) {
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    return squares / static_cast<double>(values.size());
}

struct Normalised {
    Tensor x;
    std::optional<Tensor> residual;
    std::optional<Tensor> sum;
    std::vector<double> weight;
    std::vector<double> bias;
    RowResults results;
    double eps = 0.0;
    bool subtract_mean = false;

    std::vector<double> values(std::int64_t row) const {
        std::vector<double> values = row_values(x, row);
        if (!residual) return values;
        const std::vector<double> more = row_values(*residual, row);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] += more[i];
        write_values(*sum, row, values);
        return row_values(*sum, row);  // as they were rounded
    }

    void do_row(std::int64_t row) const {
        std::vector<double> y = values(row);
        if (subtract_mean) {
            const double mean =
                std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
            for (double& value : y)
                value -= mean;
        }
        const double factor = 1.0 / std::sqrt(mean_square(y) + eps);
        for (std::size_t i = 0; i < y.size(); ++i)
            y[i] = y[i] * factor * weight[i] + bias[i];
        write_results(results, row, y);
    }
};

}  // namespace

void rms_norm(const RmsNorm& call) {
    Normalised norm;
    norm.x = matrix_of(call.x, "x");
    const std::int64_t rows = norm.x.shape[0];
    const std::int64_t d = norm.x.shape[1];
    require(call.residual.has_value() == call.sum.has_value(),
            "residual and sum must both be given, or neither");
    if (call.residual) {
        norm.residual = matrix_of(*call.residual, "residual");
        norm.sum = matrix_of(*call.sum, "sum");
        require_shape(*norm.residual, "residual", {rows, d});
        require_shape(*norm.sum, "sum", {rows, d});
    }
    norm.weight = vector_of(call.weight, "weight", d, call.one_plus_weight ? 1.0 : 0.0, 1.0);
    norm.bias = vector_of(call.bias, "bias", d, 0.0, 0.0);
    norm.results = {matrix_of(call.out, "out"), call.multiplier, call.scale};
    require_results(norm.results, rows, d);
    norm.eps = call.eps;
    norm.subtract_mean = call.subtract_mean;
    parallel_for(rows, [&](std::int64_t row) { norm.do_row(row); });
}

}  // namespace jitney::reference
