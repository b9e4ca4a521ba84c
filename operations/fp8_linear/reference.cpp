#include "operations/fp8_linear/reference.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "operations/reference/check.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

// Of numbers that are not negative; NaN lies above infinity.
float largest_of(const float* numbers, int count) {
    std::uint32_t largest = 0;
    for (int i = 0; i < count; ++i)
        largest = std::max(largest, std::bit_cast<std::uint32_t>(numbers[i]) & 0x7FFFFFFFU);
    return std::bit_cast<float>(largest);
}

void update(const Fp8UpdateRow& row, const Fp8UpdateParams& params) {
    float* const history = row.state + kFp8StateHistory;
    const float amax = row.state[kFp8StateAmax];
    // A row without a history begins with the first amax of which a multiplier can be made.
    if (row.state[kFp8StateMultiplier] == 0.0F && !is_usable_amax(amax)) return;
    std::copy_backward(history, history + params.history - 1, history + params.history);
    history[0] = amax;
    const float counts = params.latest != 0 ? amax : largest_of(history, params.history);
    const float multiplier = next_fp8_multiplier(row.state[kFp8StateMultiplier], counts,
                                                 row.largest, params.margin_power);
    row.state[kFp8StateMultiplier] = multiplier;
    row.state[kFp8StateScale] = fp8_scale(multiplier);
}

}  // namespace

void fp8_update(const Fp8UpdateParams& params) {
    for (const Fp8UpdateRow& row : params.rows) {
        if (row.state != nullptr && row.used != nullptr) *row.used = fp8_scale_of_state(row.state);
    }
    for (const Fp8UpdateProduct& product : params.products) {
        if (product.out != nullptr) *product.out = fp8_product_scale(*product.a, *product.b);
    }
    if (params.history == 0) return;
    for (const Fp8UpdateRow& row : params.rows) {
        if (row.state != nullptr) update(row, params);
    }
}

void column_sums(const Tensor& x, const Tensor& out) {
    require_host(x, "x");
    require_host(out, "out");
    require(x.ndim == 2, "x has the shape " + text_of_shape(x) + "; it must be [rows, cols]");
    const std::int64_t cols = x.shape[1];
    require_shape(out, "out", {cols});
    std::vector<double> sums(static_cast<std::size_t>(cols));
    std::vector<double> row(sums.size());
    for (std::int64_t i = 0; i < x.shape[0]; ++i) {
        read_row(row_of(x, i * x.strides[0], 1), cols, row.data());
        for (std::size_t col = 0; col < sums.size(); ++col)
            sums[col] += row[col];
    }
    write_row(row_of(out, 0, 0), cols, sums.data());
}

}  // namespace jitney::reference
