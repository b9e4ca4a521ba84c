// Attention by its definition: three loops, in long double, with indices instead of strides.
#pragma once

#include "tests/support/problems.hpp"

namespace jitney::tests {

struct NaiveResult {
    HostTensor out;  // fp32
    HostTensor lse;
};

NaiveResult naive_attention(const AttentionProblem& problem);

}  // namespace jitney::tests
