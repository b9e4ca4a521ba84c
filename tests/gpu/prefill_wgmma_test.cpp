// The kernel of Hopper alone, with everything that it takes: lengths on the device, ragged queries,
// pages, windows and the other options, groups that share a tile whole, in part and not at all, and
// more tiles than blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/plan.hpp"
#include "jitney/prewarm.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kKernel = "attn_prefill_wgmma";

// More tiles than a GPU has SMs, of as few queries and keys as have several tiles each.
AttentionCase large_case(std::int64_t head_dim, std::int64_t q_heads, std::int64_t kv_heads,
                         bool causal) {
    AttentionCase test;
    test.shape = {5,      300, 210, q_heads, kv_heads, head_dim, DType::bf16, MaskKind::none,
                  causal, {}};
    test.kernel = kKernel;
    return test;
}

// Random requests whose specializations are few.
ServingShape random_shape(Random& random) {
    static constexpr std::int64_t kDims[] = {64, 128, 256};
    const ServingLimits limits = {
        .batch = 4, .q_len = 160, .kv_len = 420, .page_sizes = {1, 3, 8, 16, 32, 48, 64, 128, 256}};
    ServingShape shape = random_serving_shape(random, limits, random.chance(0.5));
    shape.head_dim = random.pick(std::span<const std::int64_t>(kDims));
    shape.dtype = shape.head_dim == 64 ? DType::fp16 : DType::bf16;
    shape.causal = random.chance(0.6);
    const std::int64_t set = random.integer(0, 4);
    add_options(shape,
                {.window = set == 1,
                 .softcap = set == 2,
                 .alibi = set == 3,
                 .sinks = set == 1,
                 .mask = set >= 3},
                random);
    return shape;
}

// Runs a problem by this kernel; false: it can't, which it may only on another chip.
bool run_shape(const ServingShape& shape, Random& random) {
    INFO(shape.text(), " ", random.text());
    ServingProblem problem(shape, random);
    const ServingDevice device(problem);
    const AttentionArgs args = device.args(shape);
    if (!can_run(kKernel, args)) return false;
    const Scope scope(kKernel);
    attention(args);
    CHECK(last_run().starts_with(kKernel));
    synchronize();
    device.check_against_reference(problem);
    return true;
}

// Compiles what the problems need, as many at a time as there are cores, and returns those of which
// something is launched: all that have a query.
std::vector<ServingShape> prewarmed(const std::vector<ServingShape>& shapes, Random& random) {
    std::vector<ServingShape> launched;
    std::vector<std::string> specs;
    for (const ServingShape& shape : shapes) {
        ServingProblem problem(shape, random);
        const Scope scope(kKernel);
        const Explanation explanation =
            explain(serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0})));
        if (explanation.chosen.empty()) {
            CHECK(
                std::ranges::all_of(shape.q_lens, [](std::int64_t length) { return length == 0; }));
            continue;
        }
        launched.push_back(shape);
        specs.push_back(explanation.chosen);
        specs.insert(specs.end(), explanation.before.begin(), explanation.before.end());
    }
    std::ranges::sort(specs);
    specs.erase(std::unique(specs.begin(), specs.end()), specs.end());
    for (const PrewarmEntry& entry : prewarm(specs))
        CHECK_MESSAGE(entry.status != PrewarmStatus::failed, entry.error);
    return launched;
}

void run_shapes(const std::vector<ServingShape>& shapes, Random& random) {
    const std::vector<ServingShape> launched = prewarmed(shapes, random);
    for (const ServingShape& shape : launched)
        CHECK(run_shape(shape, random));
    MESSAGE(launched.size(), " problems, ", random.text());
}

// Twice, so that a counter that does not come back to zero leaves tiles out: those of the second
// launch have to be there, and to be the first one's bit for bit.
void run_twice(const AttentionCase& test, Random& random) {
    INFO(test.text(), " ", random.text());
    AttentionProblem problem(test.shape, random);
    const DeviceProblem first(problem);
    const DeviceProblem second(problem);
    const Scope scope(kKernel);
    attention(first.args(test.shape));
    attention(second.args(test.shape));
    CHECK(last_run().starts_with(kKernel));
    const HostTensor out = first.out.download();
    const HostTensor lse = first.lse.download();
    CHECK(is_identical(second.out.download(), out));
    CHECK(is_identical(second.lse.download(), lse));
    check_against_reference(problem, out, &lse);
}

bool has_kernel() {
    return can_run(large_case(64, 2, 2, false));
}

}  // namespace

TEST_CASE("prefill on Hopper: lengths on the device and options" * doctest::test_suite(kLong)) {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    const std::vector<std::int64_t> head_dims =
        is_quick() ? std::vector<std::int64_t>{64, 256}
                   : std::vector<std::int64_t>{8, 64, 72, 128, 192, 256};
    const std::vector<ServingOptions> options = {
        {},
        {.window = true},
        {.softcap = true, .sinks = true},
        {.alibi = true},
        {.window = true, .softcap = true, .alibi = true, .sinks = true}};
    std::vector<ServingShape> shapes;
    for (const std::int64_t head_dim : head_dims) {
        for (const KeyForm keys : {KeyForm::dense, KeyForm::padded, KeyForm::ragged}) {
            for (const ServingOptions& option : options) {
                for (const bool causal : {false, true}) {
                    ServingShape shape;
                    shape.head_dim = head_dim;
                    // One of the two, so that there are half as many kernels to compile.
                    shape.dtype = head_dim % 128 == 0 ? DType::bf16 : DType::fp16;
                    shape.kv_heads = 2;
                    shape.group = random.integer(1, 8);
                    const std::int64_t q_len = random.integer(1, 300);
                    shape.q_lens.assign(3, q_len);
                    shape.kv_lens = {random.integer(1, 700), 0, random.integer(1, 100)};
                    if (keys == KeyForm::dense) shape.kv_lens.assign(3, random.integer(1, 700));
                    shape.keys = keys;
                    shape.causal = causal;
                    add_options(shape, option, random);
                    shapes.push_back(shape);
                }
            }
        }
    }
    run_shapes(shapes, random);
}

TEST_CASE("prefill on Hopper: random requests, pages and options" * doctest::test_suite(kLong)) {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    std::vector<ServingShape> shapes;
    for (std::size_t i = 0; i < (is_quick() ? 40 : 200); ++i)
        shapes.push_back(random_shape(random));
    run_shapes(shapes, random);
}

TEST_CASE("prefill on Hopper: more tiles than blocks, one launch behind the other" *
          doctest::test_suite(kLong)) {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    for (const std::int64_t head_dim : {64, 128, 192, 256}) {
        for (const auto& [q_heads, kv_heads] :
             {std::pair{16, 16}, std::pair{24, 8}, std::pair{32, 2}, std::pair{20, 4}}) {
            for (const bool causal : {false, true}) {
                if (is_quick() && head_dim != 128) continue;
                run_twice(large_case(head_dim, q_heads, kv_heads, causal), random);
            }
        }
    }
}

TEST_CASE("prefill on Hopper: a plan with a workspace of the caller's, for other tensors") {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    const AttentionCase test = large_case(128, 16, 4, true);
    AttentionProblem first(test.shape, random);
    AttentionProblem second(test.shape, random);
    const DeviceProblem first_device(first);
    const DeviceProblem second_device(second);
    const AttentionPlan plan(first_device.args(test.shape));
    CHECK(plan.explanation().chosen.starts_with(kKernel));
    REQUIRE(plan.workspace_bytes() > 0);
    const OwnWorkspace workspace(plan.workspace_bytes());
    for (const DeviceProblem* device : {&second_device, &first_device}) {
        AttentionArgs args = device->args(test.shape);
        args.workspace = workspace.view();
        plan.run(args);
    }
    synchronize();
    const HostTensor second_lse = second_device.lse.download();
    check_against_reference(second, second_device.out.download(), &second_lse);
    const HostTensor first_lse = first_device.lse.download();
    check_against_reference(first, first_device.out.download(), &first_lse);
}

}  // namespace jitney::tests
