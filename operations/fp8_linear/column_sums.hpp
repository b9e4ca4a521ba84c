// In which geometry column_sums runs.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct ColumnSumsProblem {
    int format = 0;         // of the matrix
    int out = 0;            // of the sums
    std::int64_t rows = 0;  // at least 0
    int cols = 0;           // at least 1
    bool aligned = true;    // every row of the matrix begins at a multiple of 16 bytes
};

struct ColumnSumsChoice {
    Spec spec;
    Geometry geometry;
    int column_blocks = 0;
    int splits = 1;  // blocks that share the rows of some columns
    std::int64_t rows_a_split = 0;
    std::size_t part_bytes = 0;
    std::size_t counter_bytes = 0;
};

ColumnSumsChoice choose_column_sums(const ColumnSumsProblem& problem, const DeviceFacts& facts);

}  // namespace jitney::policy
