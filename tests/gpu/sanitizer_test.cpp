// Small problems that pass through every branch of every kernel: what tests/gpu/run gives to
// compute-sanitizer, under which a large grid would take hours. They run with the others, too.
#include <doctest/doctest.h>

#include <vector>

#include "jitney/plan.hpp"
#include "jitney/rotary.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {

TEST_SUITE_BEGIN("sanitizer");

TEST_CASE("attention under the sanitizer") {
    std::vector<AttentionCase> cases;
    for (const std::string& kernel : kAttentionKernels) {
        const auto add = [&](std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                             bool causal, MaskKind mask, const Layout& layout) {
            AttentionCase test;
            test.shape = {1, q_len, kv_len, 3, 1, head_dim, DType::bf16, mask, causal, {}};
            test.layout = layout;
            test.kernel = kernel;
            if (can_run(test)) cases.push_back(test);
        };
        add(1, 3000, 64, false, MaskKind::none, {});  // many splits
        add(5, 700, 64, true, MaskKind::none, {});
        add(33, 70, 64, true, MaskKind::none, kBhld);
        add(33, 70, 64, false, MaskKind::heads, {});
        add(2, 130, 128, true, MaskKind::keys, {{}, {0, 1, 0, 8}});
        add(9, 65, 40, true, MaskKind::none, {});
        add(4, 0, 64, false, MaskKind::none, {});
        add(3, 37, 59, true, MaskKind::none, {});
    }
    run_cases(cases);
}

TEST_CASE("plans of requests and pages under the sanitizer") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const bool packed : {false, true}) {
        for (const bool batch_invariant : {false, true}) {
            ServingShape shape;
            shape.group = 3;
            shape.packed = packed;
            shape.causal = true;
            shape.keys = packed ? KeyForm::page_list : KeyForm::block_table;
            shape.page_size = 16;
            shape.q_lens =
                packed ? std::vector<std::int64_t>{5, 0, 23} : std::vector<std::int64_t>{1, 1, 1};
            shape.idle_rows = packed ? 2 : 0;
            shape.new_len = packed ? 0 : 1;
            shape.kv_lens = {1500, 1, 40};
            ServingProblem problem(shape, random);
            const ServingDevice device(problem);
            AttentionArgs args = device.args(shape);
            args.batch_invariant = batch_invariant;
            const AttentionPlan plan(args);
            const OwnWorkspace workspace(plan.workspace_bytes());
            args.workspace = workspace.view();
            plan.run(args);
            synchronize();
            device.check_against_reference(problem);
        }
    }
}

TEST_CASE("rotary under the sanitizer") {
    for (const RotaryStyle style : {RotaryStyle::interleaved, RotaryStyle::half_split}) {
        for (const std::int64_t head_dim : {64, 10}) {
            Random random = Random::fresh();
            HostTensor q(DType::bf16, {2, 5, 3, head_dim});
            q.fill_normal(random);
            HostTensor cos(DType::fp32, {5, head_dim / 4});
            cos.fill_uniform(random, -1.0, 1.0);
            const DeviceTensor device_q(q);
            const DeviceTensor out(HostTensor(DType::bf16, {2, 5, 3, head_dim}));
            const DeviceTensor table(cos);
            RotaryArgs args;
            args.q = device_q.view();
            args.q_out = out.view();
            args.cos = table.view();
            args.sin = table.view();
            args.style = style;
            rotary_emb(args);
            const HostTensor result = out.download();
            CHECK(result.surroundings_intact());
            CHECK(result.get(0) == result.get(0));  // no poison is left
        }
    }
}

TEST_SUITE_END();

}  // namespace jitney::tests
