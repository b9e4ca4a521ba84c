// What operations on rows may give: values in their input's dtype, or codes of E4M3 by a multiplier
// that is given or that each row makes.
#pragma once

#include <cstdint>
#include <optional>

#include "jitney/tensor.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

struct RowResults {
    const Tensor& out;
    const std::optional<Tensor>& multiplier;
    const std::optional<Tensor>& scale;
};

// Refuses what does not fit `x`, whose matrix has so many rows. The kind of the result, a
// jitney::RowResult of the kernels.
int check_results(const Named& x, const RowResults& results, std::int64_t rows, Data data);

// A tensor of rows beside x: of x's dtype and device. Its matrix.
Tensor check_rows(const Named& x, const Named& other, Data data);

// A result may begin where the input does only if it is that very view, element for element.
void check_in_place_rows(const Named& out, const Tensor& out_rows, const Named& x,
                         const Tensor& x_rows);

// The elements from row to row of a tensor that was checked.
std::int64_t row_stride(const Tensor& tensor) noexcept;

}  // namespace jitney::checks

namespace jitney {

inline void* address_of(const std::optional<Tensor>& tensor) noexcept {
    return tensor ? tensor->data : nullptr;
}

}  // namespace jitney
