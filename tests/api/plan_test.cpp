// Plans and the caller's workspace, on a driver that computes in software.
#include <array>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "operations/attention/reference.hpp"
#include "runtime/device.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

// A GPU's memory, as the fake has it.
class Memory {
  public:
    explicit Memory(std::size_t bytes) : bytes_(bytes + 256, std::byte{0xAB}) {
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
        workspace.data = bytes_.data() + (256 - begin % 256) % 256;
        workspace.bytes = bytes;
    }
    Workspace workspace;

  private:
    std::vector<std::byte> bytes_;
};

// Problems of other lengths in the same shapes; request 1 has neither queries nor keys where that
// can be said.
ServingShape serving_shape(bool packed, KeyForm keys, Random& random) {
    ServingShape shape;
    shape.packed = packed;
    shape.kv_heads = 2;
    shape.group = 2;
    shape.room = 700;
    shape.q_lens = {1, 1, 1};
    if (packed) {
        shape.q_lens = {random.integer(0, 9), 0, random.integer(0, 9)};
        shape.idle_rows = 20 - shape.q_lens[0] - shape.q_lens[2];
    }
    shape.kv_lens = {random.integer(0, 700), 0, random.integer(0, 700)};
    if (keys == KeyForm::dense) shape.kv_lens = {700, 700, 700};
    shape.keys = keys;
    shape.page_size = keys == KeyForm::block_table || keys == KeyForm::page_list ? 16 : 1;
    shape.causal = true;
    return shape;
}

AttentionArgs args_of(ServingProblem& problem) {
    return serving_call<AttentionArgs>(problem.shape, problem.views({DeviceType::cuda, 0}));
}

void check_result(ServingProblem& problem, ServingProblem expected) {
    reference::attention(serving_call<reference::Attention>(expected.shape, expected.views()));
    CHECK(problem.idle_rows_untouched(problem.at("out"), problem.at("lse")));
    expected.idle_rows_untouched(expected.at("out"), expected.at("lse"));
    JITNEY_CHECK_CLOSE(problem.at("out"), expected.at("out"), (Tolerance{1e-5, 8e-3}));
    JITNEY_CHECK_CLOSE(problem.at("lse"), expected.at("lse"), (Tolerance{1e-5, 1e-5}));
}

AttentionArgs without_data(AttentionArgs args) {
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out})
        tensor->data = nullptr;
    for (std::optional<Tensor>* tensor :
         {&args.lse, &args.mask, &args.qo_indptr, &args.kv_lens, &args.kv_indptr,
          &args.req_to_token, &args.req_pool_indices, &args.block_table, &args.kv_page_indptr,
          &args.kv_page_indices, &args.last_page_len}) {
        if (*tensor) (*tensor)->data = nullptr;
    }
    return args;
}

}  // namespace

TEST_CASE("scenario: a plan in every form" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (const bool packed : {false, true}) {
        for (const KeyForm keys :
             {KeyForm::dense, KeyForm::padded, KeyForm::ragged, KeyForm::token_table,
              KeyForm::block_table, KeyForm::page_list}) {
            ServingProblem first(serving_shape(packed, keys, random), random);
            const AttentionPlan plan(without_data(args_of(first)));
            const int loads = fake.loads;
            for (int run = 0; run < 4; ++run) {
                ServingProblem next(serving_shape(packed, keys, random), random);
                INFO(next.shape.text());
                const ServingProblem untouched = next;
                AttentionArgs args = args_of(next);
                if (run == 1) args.max_kv_len = 3;  // steers nothing any more
                if (run == 2 && args.kv_page_indices) args.kv_page_indices->shape[0] -= 1;
                plan.run(args);
                CHECK(last_run() == plan.explanation().chosen);
                check_result(next, untouched);
            }
            CHECK(fake.loads == loads);
        }
    }
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("a plan runs what the call would, in every form") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a plan in every form", fake_gpu(cache)));
}

TEST_CASE("scenario: a plan under capture" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
    const AttentionProblem untouched = problem;
    AttentionArgs args = args_of(problem);
    fake.capture_status = 1;
    try {
        const AttentionPlan plan(args);
        FAIL("it was made");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::capture);
        check_sentence(error.what());
    }
    CHECK(fake.loads == 0);
    fake.capture_status = 0;
    const AttentionPlan plan(args);
    CHECK(fake.launches == 0);
    CHECK(plan.explanation().splits > 1);
    REQUIRE(plan.workspace_bytes() > 0);
    CHECK(workspace_bytes(args) == plan.workspace_bytes());

    // With the caller's memory nothing but the kernel enters the graph.
    const Memory memory(plan.workspace_bytes());
    args.workspace = memory.workspace;
    init_workspace(args.workspace, {});
    CHECK(fake.clears == 1);
    fake.capture_status = 1;
    plan.run(args);
    plan.run(args);
    attention(args);
    check_result(problem, untouched);
    CHECK(fake.launches == 3);
    CHECK(fake.allocations == 0);
    CHECK(fake.frees == 0);
    CHECK(fake.clears == 1);
}

TEST_CASE("a captured plan with the caller's workspace is its kernel and nothing else") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a plan under capture", fake_gpu(cache)));
}

TEST_CASE("scenario: a hot plan" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
    ServingProblem ragged(serving_shape(true, KeyForm::page_list, random), random);
    std::array<AttentionArgs, 2> calls{args_of(problem), args_of(ragged)};
    const std::array<AttentionPlan, 2> plans{AttentionPlan(calls[0]), AttentionPlan(calls[1])};
    const Memory memory(std::max(plans[0].workspace_bytes(), plans[1].workspace_bytes()));
    init_workspace(memory.workspace);
    const auto run_all = [&](const Workspace& workspace) {
        for (std::size_t i = 0; i < plans.size(); ++i) {
            calls[i].workspace = workspace;
            plans[i].run(calls[i]);
        }
    };
    run_all({});
    run_all(memory.workspace);
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const int allocations = fake.allocations;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 1000; ++i)
        run_all(i % 2 == 0 ? Workspace{} : memory.workspace);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 3000);  // the ragged one has its map
    CHECK(fake.allocations == allocations);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("a run of a plan allocates nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a hot plan", fake_gpu(cache)));
}

TEST_CASE("scenario: a plan for unaligned tensors" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    AttentionShape shape = decode_shape(40);
    AttentionProblem problem(shape, random);
    const AttentionProblem untouched = problem;
    AttentionArgs args = args_of(problem);
    std::vector<std::byte> place(1 << 16);
    args.q.data = place.data() + 2;  // somewhere
    const AttentionPlan plan(args);
    CHECK(plan.explanation().chosen.starts_with("attn_decode_scalar"));
    plan.run(args_of(problem));
    check_result(problem, untouched);
}

TEST_CASE("a plan for unaligned tensors takes aligned ones too") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a plan for unaligned tensors", fake_gpu(cache)));
}

TEST_CASE("scenario: threads and devices of a plan" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
    const AttentionProblem untouched = problem;
    const AttentionArgs args = args_of(problem);
    const AttentionPlan plan(args);
    const int loads = fake.loads;
    std::jthread([&] { plan.run(args); }).join();  // has no context yet
    check_result(problem, untouched);
    CHECK(fake.loads == loads);
    // Another GPU's context is current.
    std::jthread([&] {
        const runtime::DeviceScope scope(1);
        try {
            plan.run(args);
            FAIL_CHECK("it ran");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::no_device);
            check_sentence(error.what());
        }
    }).join();
}

TEST_CASE("a plan runs on any thread, in a context of its GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: threads and devices of a plan",
                       fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "90,80"}})));
}

TEST_CASE("scenario: a plan keeps its kernel" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
    const AttentionArgs args = args_of(problem);
    const auto plan = [&] {
        const Scope scope("attn_prefill_scalar");
        return AttentionPlan(args);
    }();
    plan.run(args);
    CHECK(last_run().starts_with("attn_prefill_scalar<"));
    const Scope scope("attn_decode_mma");
    plan.run(args);
    CHECK(last_run().starts_with("attn_prefill_scalar<"));
}

TEST_CASE("a scope counts when a plan is made, and not when it runs") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: a plan keeps its kernel", fake_gpu(cache)));
}

TEST_CASE("a plan on the host") {
    Random random(3);
    AttentionShape shape = decode_shape(60);
    AttentionProblem problem(shape, random);
    const AttentionProblem untouched = problem;
    AttentionArgs args = args_of(problem, kHost);
    const AttentionPlan plan(args);
    CHECK(plan.workspace_bytes() == 0);
    CHECK(workspace_bytes(args) == 0);
    CHECK(plan.explanation().chosen == "reference");
    plan.run(args);
    CHECK(last_run() == "reference");
    check_result(problem, untouched);
    args.causal = !args.causal;
    CHECK_THROWS_AS(plan.run(args), Error);

    shape.batch = 0;
    AttentionProblem empty(shape, random);
    args = args_of(empty, kHost);
    const AttentionPlan nothing(args);
    nothing.run(args);
    CHECK(last_run().empty());
}

}  // namespace jitney::tests
