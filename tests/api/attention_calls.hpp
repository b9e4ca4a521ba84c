// Calls of attention on problems of tests/support, and what has to come of them.
#pragma once

#include <cstdint>

#include "jitney/attention.hpp"
#include "tests/support/problems.hpp"

namespace jitney::tests {

// All tensors of the problem as if they lay on `device`.
AttentionArgs args_of(AttentionProblem& problem, const Device& device = {DeviceType::cuda, 0});

// One query that decode kernels take, 4 heads over one of 64: with many keys, these are divided.
AttentionShape decode_shape(std::int64_t kv_len);

// `expected` is the problem as it was before the call.
void check_result(AttentionProblem& problem, AttentionProblem expected);

}  // namespace jitney::tests
