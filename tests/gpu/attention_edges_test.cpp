// Lengths of zero, more queries than keys, scales, large scores, and the two levels of calls.
#include <doctest/doctest.h>

#include <limits>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "tests/gpu/attention_case.hpp"

namespace jitney::tests {
namespace {

AttentionCase make_case(std::int64_t q_len, std::int64_t kv_len, const std::string& kernel) {
    AttentionCase test;
    test.shape.batch = 2;
    test.shape.q_len = q_len;
    test.shape.kv_len = kv_len;
    test.shape.q_heads = 6;
    test.shape.kv_heads = 2;
    test.shape.head_dim = 64;
    test.layout.padding = {0, 4, 0, 0};
    test.kernel = kernel;
    return test;
}

}  // namespace

TEST_CASE("without keys every row is 0 with LSE -inf") {
    for (const std::string& kernel : kAttentionKernels) {
        for (const bool causal : {false, true}) {
            for (const bool masked : {false, true}) {
                CAPTURE(kernel);
                Random random = Random::fresh();
                AttentionCase test = make_case(5, 0, kernel);
                test.shape.causal = causal;
                if (masked) test.shape.mask = MaskKind::keys;
                if (!can_run(test)) continue;
                AttentionProblem problem(test.shape, random, test.layout);
                const DeviceProblem device(problem);
                const Scope scope(kernel);
                attention(device.args(test.shape));
                CHECK(last_run().starts_with(kernel));
                const HostTensor out = device.out.download();
                const HostTensor lse = device.lse.download();
                CHECK(out.surroundings_intact());
                for (std::int64_t i = 0; i < out.elements(); ++i)
                    REQUIRE(out.get(i) == 0.0);
                for (std::int64_t i = 0; i < lse.elements(); ++i)
                    REQUIRE(lse.get(i) == -std::numeric_limits<double>::infinity());
            }
        }
    }
}

TEST_CASE("empty problems launch nothing") {
    Random random = Random::fresh();
    for (const AttentionShape& shape :
         {AttentionShape{0, 3, 5, 2, 1, 64, DType::bf16, MaskKind::none, false, {}},
          AttentionShape{2, 0, 5, 2, 1, 64, DType::bf16, MaskKind::none, true, {}},
          AttentionShape{2, 0, 0, 2, 1, 64, DType::bf16, MaskKind::none, true, {}}}) {
        AttentionProblem problem(shape, random);
        const DeviceProblem device(problem);
        attention(device.args(shape));
        CHECK(last_run().empty());
        synchronize();
    }
}

TEST_CASE("causal with more queries than keys") {
    std::vector<AttentionCase> cases;
    for (const std::string& kernel : kAttentionKernels) {
        for (const auto& [q_len, kv_len] :
             {std::pair{7, 3}, std::pair{64, 1}, std::pair{300, 130}, std::pair{129, 128}}) {
            AttentionCase test = make_case(q_len, kv_len, kernel);
            test.shape.causal = true;
            if (can_run(test)) cases.push_back(test);
        }
    }
    run_cases(cases);
}

TEST_CASE("scales") {
    std::vector<AttentionCase> cases;
    for (const std::string& kernel : kAttentionKernels) {
        for (const double scale : {1e-3, 0.05, 0.3}) {
            AttentionCase test = make_case(9, 200, kernel);
            test.shape.scale = scale;
            if (can_run(test)) cases.push_back(test);
        }
    }
    run_cases(cases);
}

TEST_CASE("without LSE") {
    std::vector<AttentionCase> cases;
    for (const std::string& kernel : kAttentionKernels) {
        AttentionCase test = make_case(9, 200, kernel);
        test.lse = false;
        if (can_run(test)) cases.push_back(test);
    }
    run_cases(cases);
}

TEST_CASE("scores far below zero are no special values") {
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        Random random = Random::fresh();
        AttentionCase test = make_case(4, 90, kernel);
        if (!can_run(test)) continue;
        AttentionProblem problem(test.shape, random, test.layout);
        // Every score is near -1e5, and they differ by more than fp32 needs to tell them apart.
        problem.q.fill([](std::int64_t) { return 40.0; });
        problem.k.fill([&](std::int64_t i) {
            return -312.0 - 2.0 * static_cast<double>(i / 128 % 5);  // one value a key
        });
        const DeviceProblem device(problem);
        const Scope scope(kernel);
        attention(device.args(test.shape));
        const HostTensor out = device.out.download();
        reference::attention(problem.reference_call());
        CHECK(problem.lse.get(0) < -9e4);
        const HostTensor lse = device.lse.download();
        check_against_reference(problem, out, &lse);
    }
}

TEST_CASE("many queries") {
    std::vector<AttentionCase> cases;
    for (const char* kernel : {"attn_prefill_scalar", "attn_prefill_mma", "attn_prefill_wgmma"}) {
        AttentionCase test = make_case(is_quick() ? 5000 : 30000, 65, kernel);
        test.shape.batch = 1;
        test.shape.q_heads = 3;
        test.shape.kv_heads = 1;
        test.shape.causal = true;
        if (can_run(test)) cases.push_back(test);
    }
    run_cases(cases);
}

TEST_CASE("ops run the kernel that they name, or fail") {
    Random random = Random::fresh();
    AttentionCase test = make_case(20, 100, "");
    AttentionProblem problem(test.shape, random, test.layout);
    const auto run = [&](auto op, ops::Variant variant, const char* kernel) {
        CAPTURE(kernel);
        const DeviceProblem device(problem);
        op(device.args(test.shape), variant, nullptr);
        CHECK(last_run().starts_with(kernel));
        AttentionProblem expected = problem;
        const HostTensor lse = device.lse.download();
        check_against_reference(expected, device.out.download(), &lse);
    };
    run(ops::attn_prefill, ops::Variant::scalar, "attn_prefill_scalar<");
    run(ops::attn_prefill, ops::Variant::mma, "attn_prefill_mma<");
    if (can_run(make_case(20, 100, "attn_prefill_wgmma"))) {
        run(ops::attn_prefill, ops::Variant::wgmma, "attn_prefill_wgmma<");
    }
    run(ops::attn_decode, ops::Variant::scalar, "attn_decode_scalar<");
    run(ops::attn_decode, ops::Variant::mma, "attn_decode_mma<");

    AttentionCase long_queries = make_case(65, 100, "");
    AttentionProblem too_long(long_queries.shape, random, long_queries.layout);
    const DeviceProblem device(too_long);
    try {
        ops::attn_decode(device.args(long_queries.shape), ops::Variant::mma);
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::unsupported);
        CHECK(std::string(error.what()).find("q_len 65 is above 64") != std::string::npos);
    }
    CHECK(last_run().empty());
}

TEST_CASE("a scope for the reference backend refuses tensors on a GPU") {
    Random random = Random::fresh();
    AttentionCase test = make_case(2, 3, "");
    AttentionProblem problem(test.shape, random, test.layout);
    const DeviceProblem device(problem);
    const Scope scope(Backend::reference);
    CHECK_THROWS_AS(attention(device.args(test.shape)), Error);
}

}  // namespace jitney::tests
