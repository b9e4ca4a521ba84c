// Random problems; the seed is printed, and JITNEY_TEST_SEED repeats it.
#include <doctest/doctest.h>

#include "tests/gpu/attention_case.hpp"

namespace jitney::tests {

TEST_CASE("random problems by the kernel that the policy chooses, and by random kernels" *
          doctest::test_suite(kLong)) {
    Random random = Random::fresh();
    AttentionLimits limits;
    limits.q_len = 150;
    limits.kv_len = 600;
    limits.head_dims = {8, 40, 64, 72, 128, 136, 256, 33, 300};
    limits.dtypes = {DType::bf16, DType::fp16, DType::fp32};
    std::vector<AttentionCase> cases;
    const std::size_t count = is_quick() ? 40 : 300;
    while (cases.size() < count) {
        AttentionCase test;
        test.shape = random_attention_shape(random, limits);
        test.layout = random_layout(random);
        if (random.chance(0.7)) {
            test.kernel = random.pick<std::string>(kAttentionKernels);
        }
        if (can_run(test)) cases.push_back(test);
    }
    prewarm_cases(cases);
    for (const AttentionCase& test : cases)
        run_case(test, random);
    MESSAGE(cases.size(), " problems, ", random.text());
}

}  // namespace jitney::tests
