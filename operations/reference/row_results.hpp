// Matrices of numbers, read and written row by row, and what operations on rows give: values, or
// codes of E4M3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// The matrix of a tensor whose dimensions before the last can be walked in one stride: [rows, d].
// Throws Error(invalid_argument) where they can't, or where it is not in host memory.
Tensor matrix_of(const Tensor& tensor, const std::string& name);

std::vector<double> row_values(const Tensor& matrix, std::int64_t row);
void write_values(const Tensor& matrix, std::int64_t row, const std::vector<double>& values);

// Where results go, and what makes codes of them.
struct RowResults {
    Tensor out;                        // [rows, d]: any floating format, or e4m3
    std::optional<Tensor> multiplier;  // one fp32, of e4m3
    std::optional<Tensor> scale;       // fp32 [rows], of e4m3: receives what each row makes
};

// Throws Error(invalid_argument) where they are no results of so many rows of d values.
void require_results(const RowResults& results, std::int64_t rows, std::int64_t d);
void write_results(const RowResults& results, std::int64_t row, const std::vector<double>& values);

}  // namespace jitney::reference
