// Plans and the caller's workspace, on a driver that computes in software.
#include <array>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "reference/attention.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/problems.hpp"
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

AttentionShape decode_shape() {
    AttentionShape shape;
    shape.q_len = 1;
    shape.kv_len = 20000;
    shape.q_heads = 4;
    shape.kv_heads = 1;
    shape.head_dim = 64;
    return shape;
}

AttentionArgs args_of(AttentionProblem& problem) {
    AttentionArgs args;
    args.q = on_gpu(problem.q);
    args.k = on_gpu(problem.k);
    args.v = on_gpu(problem.v);
    args.out = on_gpu(problem.out);
    args.lse = on_gpu(problem.lse);
    args.causal = problem.shape.causal;
    return args;
}

void check_result(AttentionProblem& problem, AttentionProblem expected) {
    reference::attention(expected.reference_call());
    JITNEY_CHECK_CLOSE(problem.out, expected.out, (Tolerance{1e-5, 8e-3}));
    JITNEY_CHECK_CLOSE(problem.lse, expected.lse, (Tolerance{1e-5, 1e-5}));
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
    AttentionProblem problem(decode_shape(), random);
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
    AttentionProblem problem(decode_shape(), random);
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

TEST_CASE("scenario: calls that a plan refuses" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(), random);
    const AttentionArgs good = args_of(problem);
    const AttentionPlan plan(good);
    const AttentionPlan copy = plan;
    static float numbers[64];
    static std::byte memory[512];
    using Bad = BadCall<AttentionArgs>;
    const std::vector<Bad> bad = {
        {"shape",
         [](auto& a) {
             a.q.shape[0] = a.k.shape[0] = a.v.shape[0] = a.out.shape[0] = 0;
             a.lse->shape[0] = 0;
         },
         {"q", "[0, 1, 4, 64]", "plan"}},
        {"a call that is bad anyway", [](auto& a) { a.q.shape[3] = 32; }, {"k", "32"}},
        {"strides",
         [](auto& a) {
             a.k.strides[1] *= 2;
             a.v.strides[1] *= 2;
         },
         {"k", "strides", "plan"}},
        {"null", [](auto& a) { a.q.data = nullptr; }, {"q", "null"}},
        {"out over q", [](auto& a) { a.out.data = a.q.data; }, {"out", "q"}},
        {"dtype",
         [](auto& a) {
             for (Tensor* t : {&a.q, &a.k, &a.v, &a.out})
                 t->dtype = DType::fp16;
         },
         {"q", "fp16", "bf16", "plan"}},
        {"device",
         [](auto& a) {
             for (Tensor* t : {&a.q, &a.k, &a.v, &a.out, &*a.lse})
                 t->device.index = 1;
         },
         {"q", "GPU 1", "GPU 0", "plan"}},
        {"host",
         [](auto& a) {
             for (Tensor* t : {&a.q, &a.k, &a.v, &a.out, &*a.lse})
                 t->device = {DeviceType::cpu, 0};
         },
         {"q", "host memory", "plan"}},
        {"no lse", [](auto& a) { a.lse.reset(); }, {"lse", "left out", "with"}},
        {"sinks",
         [](auto& a) { a.sinks = Tensor::contiguous(numbers, DType::fp32, {4}); },
         {"sinks", "given", "without"}},
        {"causal", [](auto& a) { a.causal = !a.causal; }, {"causal", "plan"}},
        {"scale", [](auto& a) { a.scale = 0.25f; }, {"scale", "plan"}},
        {"window", [](auto& a) { a.window_left = 7; }, {"window_left", "plan"}},
        {"softcap", [](auto& a) { a.softcap = 2.0f; }, {"softcap", "plan"}},
        {"batch_invariant", [](auto& a) { a.batch_invariant = true; }, {"batch_invariant", "plan"}},
        {"alignment",
         [](auto& a) { a.q.data = static_cast<std::byte*>(a.q.data) + 2; },
         {"16 bytes", "align"}},
        {"a small workspace",
         [](auto& a) {
             a.workspace = {reinterpret_cast<void*>(std::uintptr_t{4096}), 100};
         },
         {"workspace", "100"}},
        {"a crooked workspace",
         [](auto& a) {
             a.workspace = {memory + 1, 1u << 30};
         },
         {"workspace", "256"}},
    };
    for (const Bad& each : bad) {
        check_refused(each, good, [&](const AttentionArgs& args) { plan.run(args); });
        CHECK(last_run().empty());
    }
    CHECK(fake.launches == 0);
    // What may differ.
    AttentionArgs other = good;
    other.max_kv_len = 5;
    copy.run(other);
    CHECK(fake.launches == 1);
}

TEST_CASE("a plan refuses calls that it was not made for, with what differs") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: calls that a plan refuses", fake_gpu(cache)));
}

TEST_CASE("scenario: a plan for unaligned tensors" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    AttentionShape shape = decode_shape();
    shape.kv_len = 40;
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
    AttentionProblem problem(decode_shape(), random);
    const AttentionProblem untouched = problem;
    const AttentionArgs args = args_of(problem);
    const AttentionPlan plan(args);
    const int loads = fake.loads;
    std::jthread([&] { plan.run(args); }).join();  // has no context yet
    check_result(problem, untouched);
    CHECK(fake.loads == loads);
    // Another GPU's context is current.
    std::jthread([&] {
        AttentionArgs there = args;
        for (Tensor* tensor : {&there.q, &there.k, &there.v, &there.out, &*there.lse})
            tensor->device.index = 1;
        attention(there);
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
    AttentionProblem problem(decode_shape(), random);
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

TEST_CASE("scenario: workspaces" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(), random);
    AttentionArgs args = args_of(problem);
    std::vector<std::byte> memory(1024);
    auto* const aligned =
        memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
    const auto refused = [](const auto& call, const char* word) {
        try {
            call();
            FAIL_CHECK("it was accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            check_sentence(error.what());
            CHECK_MESSAGE(std::string(error.what()).find(word) != std::string::npos, error.what());
        }
    };
    refused([] { init_workspace({}); }, "null");
    refused([&] { init_workspace({aligned, 512}); }, "512");
    refused([&] { init_workspace({aligned + 16, 1 << 20}); }, "256");
    refused([&] { init_workspace({aligned, 1 << 20}, {DeviceType::cpu, 0}); }, "host memory");
    args.workspace = {aligned, 512};
    refused([&] { attention(args); }, "512");
    args.workspace = {nullptr, 512};
    refused([&] { attention(args); }, "null");
    args.workspace = {};
    CHECK(fake.launches == 0);
    CHECK(fake.clears == 0);

    // A call that needs none does not look at it.
    AttentionShape small = decode_shape();
    small.kv_len = 30;
    AttentionProblem other(small, random);
    AttentionArgs plain = args_of(other);
    CHECK(workspace_bytes(plain) == 0);
    plain.workspace = {aligned, 512};
    attention(plain);
    CHECK(fake.launches == 1);

    // A batch of more divided tiles than the counters have room for brings its own.
    AttentionShape wide = decode_shape();
    wide.batch = 6000;
    wide.kv_heads = wide.q_heads = 4;
    wide.kv_len = 200;
    wide.head_dim = 8;
    AttentionProblem many(wide, random);
    AttentionArgs invariant = args_of(many);
    invariant.batch_invariant = true;
    CHECK(workspace_bytes(invariant) == 0);
    invariant.k.shape[1] = invariant.v.shape[1] = 1000;
    invariant.k.data = invariant.v.data = nullptr;
    CHECK(workspace_bytes(invariant) > 24000 * 4 + 65536);
}

TEST_CASE("workspaces that can't be meant are refused") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: workspaces", fake_gpu(cache)));
}

TEST_CASE("a plan on the host") {
    Random random(3);
    AttentionShape shape = decode_shape();
    shape.kv_len = 60;
    AttentionProblem problem(shape, random);
    const AttentionProblem untouched = problem;
    AttentionArgs args = args_of(problem);
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out, &*args.lse})
        tensor->device = {DeviceType::cpu, 0};
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
    args = args_of(empty);
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out, &*args.lse})
        tensor->device = {DeviceType::cpu, 0};
    const AttentionPlan nothing(args);
    nothing.run(args);
    CHECK(last_run().empty());
}

TEST_CASE("an attention whose requests keep their results among others, on the host") {
    Random random(3);
    AttentionShape shape = decode_shape();
    shape.kv_len = 60;
    AttentionProblem problem(shape, random);
    AttentionArgs args = args_of(problem);
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out, &*args.lse})
        tensor->device = {DeviceType::cpu, 0};
    args.batch_invariant = true;
    attention(args);
    CHECK(last_run() == "reference");
}

}  // namespace jitney::tests
