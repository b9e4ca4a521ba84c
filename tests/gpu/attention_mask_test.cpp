// Boolean masks of every rank, with rows that see nothing.
#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "jitney/backend.hpp"
#include "tests/gpu/attention_case.hpp"

namespace jitney::tests {
namespace {

// A call of the tensor-core prefill whose mask keeps what `keep` says of (row, key).
void run_kept(const AttentionShape& shape,
              const std::function<bool(std::int64_t, std::int64_t)>& keep, Random& random) {
    CAPTURE(shape.text());
    AttentionProblem problem(shape, random, {});
    problem.mask->fill([&](std::int64_t i) {
        return keep(i / shape.kv_len % shape.q_len, i % shape.kv_len) ? 1.0 : 0.0;
    });
    problem.spoil_unseen(random);
    const DeviceProblem device(problem);
    const Scope scope("attn_prefill_mma");
    attention(device.args(shape));
    const HostTensor out = device.out.download();
    const HostTensor lse = device.lse.download();
    check_against_reference(problem, out, &lse);
}

}  // namespace

TEST_CASE("masks of every rank by every kernel") {
    std::vector<AttentionCase> cases;
    for (const MaskKind mask : {MaskKind::keys, MaskKind::queries, MaskKind::shared_heads,
                                MaskKind::heads, MaskKind::one_batch}) {
        for (const bool causal : {false, true}) {
            for (const std::int64_t q_len : {1, 6, 100}) {
                for (const std::string& kernel : kAttentionKernels) {
                    AttentionCase test;
                    test.shape.batch = 2;
                    test.shape.q_len = q_len;
                    test.shape.kv_len = q_len == 6 ? 1000 : 131;
                    test.shape.q_heads = 6;
                    test.shape.kv_heads = 2;
                    test.shape.head_dim = 64;
                    test.shape.mask = mask;
                    test.shape.causal = causal;
                    test.layout.padding = {0, 3, 0, 8};
                    test.kernel = kernel;
                    if (can_run(test)) cases.push_back(test);
                }
            }
        }
    }
    run_cases(cases);
}

TEST_CASE("rows that see nothing give 0 and LSE -inf") {
    for (const std::string& kernel : kAttentionKernels) {
        for (const std::int64_t kv_len : {40, 5000}) {  // one split, and many
            CAPTURE(kernel);
            CAPTURE(kv_len);
            Random random = Random::fresh();
            AttentionCase test;
            test.shape = {2, 3, kv_len, 4, 2, 64, DType::bf16, MaskKind::keys, false, {}};
            test.kernel = kernel;
            if (!can_run(test)) continue;
            AttentionProblem problem(test.shape, random, test.layout);
            // The first request sees nothing, the second its last key alone.
            problem.mask->fill([&](std::int64_t i) { return i == 2 * kv_len - 1 ? 1.0 : 0.0; });
            problem.spoil_unseen(random);
            const DeviceProblem device(problem);
            const Scope scope(kernel);
            attention(device.args(test.shape));
            const HostTensor out = device.out.download();
            const HostTensor lse = device.lse.download();
            check_against_reference(problem, out, &lse);
            for (std::int64_t i = 0; i < out.elements() / 2; ++i)
                REQUIRE(out.get(i) == 0.0);
            for (std::int64_t i = 0; i < lse.elements() / 2; ++i)
                REQUIRE(lse.get(i) == -std::numeric_limits<double>::infinity());
        }
    }
}

// Wide tiles and narrow ones, with few tiles that any row keeps a key of; 1100 keys are aligned to
// 4 bytes and not to 16, and 1099 to nothing.
TEST_CASE("masks that leave out most tiles of keys") {
    Random random = Random::fresh();
    for (const std::int64_t head_dim : {64, 128, 256}) {
        for (const std::int64_t kv_len : {1099, 1100, 1152}) {
            if (is_quick() && kv_len != 1100) continue;
            for (const std::int64_t heads : {2, 80}) {
                AttentionShape shape = {
                    1, 300, kv_len, heads, 2, head_dim, DType::bf16, MaskKind::queries, false, {}};
                run_kept(
                    shape, [](std::int64_t row, std::int64_t key) { return key <= row + 799; },
                    random);
                run_kept(
                    shape,
                    [](std::int64_t row, std::int64_t key) {
                        return (key / 16 + row / 40) % 13 == 5;
                    },
                    random);
                shape.causal = true;
                shape.mask = MaskKind::shared_heads;
                run_kept(
                    shape,
                    [](std::int64_t row, std::int64_t key) {
                        return row > 33 && key == 1090 - 3 * row;
                    },
                    random);
                run_kept(
                    shape, [](std::int64_t, std::int64_t) { return true; }, random);
                run_kept(
                    shape, [](std::int64_t, std::int64_t) { return false; }, random);
            }
        }
    }
}

TEST_CASE("masks of more keys than a block's summary of them has room for") {
    Random random = Random::fresh();
    for (const std::int64_t first : {0, 131040, 131072, 299990}) {
        const AttentionShape shape = {1,  70,          300000,         1,     1,
                                      64, DType::bf16, MaskKind::keys, false, {}};
        run_kept(
            shape,
            [first](std::int64_t, std::int64_t key) {
                return key >= first && (key % 70001 == 5 || key == 299999);
            },
            random);
    }
}

}  // namespace jitney::tests
