// Problems of attention whose results can be worked out by hand.
#pragma once

#include <cstdint>

#include "tests/support/problems.hpp"

namespace jitney::tests {

// In fp32, one head of dimension 1.
inline AttentionShape small(std::int64_t q_len, std::int64_t kv_len) {
    AttentionShape shape;
    shape.q_len = q_len;
    shape.kv_len = kv_len;
    shape.dtype = DType::fp32;
    return shape;
}

// q = 0: every visible key weighs the same, so a row is the mean of the values that it sees. The
// values are 1, 2, 3, ... along the keys.
inline AttentionProblem counting_problem(const AttentionShape& shape) {
    Random random(1);
    AttentionProblem problem(shape, random);
    problem.q.fill([](std::int64_t) { return 0.0; });
    const std::int64_t row = shape.kv_heads * shape.head_dim;
    problem.v.fill([&](std::int64_t i) { return static_cast<double>(i / row % shape.kv_len + 1); });
    return problem;
}

}  // namespace jitney::tests
