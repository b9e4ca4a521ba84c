#include "tests/api/attention_calls.hpp"

#include <doctest/doctest.h>

#include "tests/support/compare.hpp"

namespace jitney::tests {

AttentionArgs args_of(AttentionProblem& problem, const Device& device) {
    AttentionArgs args;
    args.q = problem.q.view(device);
    args.k = problem.k.view(device);
    args.v = problem.v.view(device);
    args.out = problem.out.view(device);
    if (problem.mask) args.mask = problem.mask->view(device);
    args.lse = problem.lse.view(device);
    args.causal = problem.shape.causal;
    if (problem.shape.scale) args.scale = static_cast<float>(*problem.shape.scale);
    return args;
}

AttentionShape decode_shape(std::int64_t kv_len) {
    AttentionShape shape;
    shape.q_len = 1;
    shape.kv_len = kv_len;
    shape.q_heads = 4;
    shape.kv_heads = 1;
    shape.head_dim = 64;
    return shape;
}

void check_result(AttentionProblem& problem, AttentionProblem expected) {
    reference::attention(expected.reference_call());
    // Both are computed alike, but for an fp32 scale in units of log2.
    JITNEY_CHECK_CLOSE(problem.out, expected.out, (Tolerance{1e-5, 8e-3}));
    JITNEY_CHECK_CLOSE(problem.lse, expected.lse, (Tolerance{1e-5, 1e-5}));
    CHECK(problem.out.surroundings_intact());
}

}  // namespace jitney::tests
