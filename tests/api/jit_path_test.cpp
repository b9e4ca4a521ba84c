// From arguments to a launch, with a driver that computes in software: what reaches the kernels,
// when they are loaded, and what a call costs after the first.
#include <thread>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/rotary.hpp"
#include "operations/rotary/reference.hpp"
#include "runtime/driver.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::tests {
namespace {

// Of a kernel, not of the reference backend.
void check_kernel_result(AttentionProblem& problem, const AttentionProblem& untouched) {
    CHECK(last_run().find('<') != std::string::npos);
    check_result(problem, untouched);
}

struct Rotated {
    explicit Rotated(Random& random) {
        q.fill_normal(random);
        k.fill_normal(random);
        cos.fill_uniform(random, -1.0, 1.0);
        positions.fill([](std::int64_t i) { return static_cast<double>(i % 7); });
    }
    RotaryArgs args() {
        RotaryArgs args;
        args.q = on_gpu(q);
        args.k = on_gpu(k);
        args.q_out = on_gpu(q_out);
        args.k_out = on_gpu(k_out);
        args.cos = args.sin = on_gpu(cos);
        args.positions = on_gpu(positions);
        return args;
    }

    HostTensor q{DType::bf16, {2, 5, 4, 64}, kBhld};
    HostTensor k{DType::bf16, {2, 5, 2, 64}, {{}, {0, 1, 0, 8}}};
    HostTensor q_out{DType::bf16, {2, 5, 4, 64}};
    HostTensor k_out{DType::bf16, {2, 5, 2, 64}, kBhld};
    HostTensor cos{DType::fp32, {7, 16}};
    HostTensor positions{DType::int32, {2, 5}};
};

}  // namespace

TEST_CASE("scenario: random problems" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    AttentionLimits limits;
    limits.q_len = 30;
    limits.kv_len = 60;
    limits.head_dims = {8, 33, 64, 128};
    limits.dtypes = {DType::bf16, DType::fp16, DType::fp32};
    for (int i = 0; i < 150; ++i) {
        AttentionProblem problem(random_attention_shape(random, limits), random,
                                 random_layout(random));
        CAPTURE(problem.shape.text());
        const AttentionProblem untouched = problem;
        attention(args_of(problem));
        check_kernel_result(problem, untouched);
    }
}

TEST_CASE("what reaches the kernels means what the arguments mean") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random problems", fake_gpu(cache)));
}

TEST_CASE("scenario: the launch" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    for (const std::int64_t kv_len : {0, 50, 20000}) {
        AttentionProblem problem(decode_shape(kv_len), random);
        const AttentionProblem untouched = problem;
        AttentionArgs args = args_of(problem);
        if (kv_len == 0) args.k.data = args.v.data = nullptr;
        auto* stream = reinterpret_cast<Stream>(std::uintptr_t{0x70});
        attention(args, stream);
        check_kernel_result(problem, untouched);
        const Explanation expected = explain(args);
        CHECK(last_run() == expected.chosen);
        CHECK(fake.launch.grid == expected.grid);
        CHECK(fake.launch.block == expected.block);
        CHECK(fake.launch.shared_bytes == static_cast<unsigned>(expected.shared_bytes));
        CHECK(fake.launch.cluster == std::array<unsigned, 3>{});
        CHECK(fake.launch.stream == stream);
        CHECK((expected.splits > 1) == (kv_len == 20000));
    }
    CHECK(fake.launches == 3);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("a launch has the geometry that explain tells") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: the launch", fake_gpu(cache)));
}

TEST_CASE("scenario: empty problems" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    for (const auto& [batch, q_len] : {std::pair{0, 4}, std::pair{3, 0}}) {
        AttentionShape shape = decode_shape(10);
        shape.batch = batch;
        shape.q_len = q_len;
        AttentionProblem problem(shape, random);
        attention(args_of(problem));
        ops::attn_decode(args_of(problem), ops::Variant::mma);
        CHECK(last_run().empty());
    }
    Rotated rotated(random);
    RotaryArgs args = rotated.args();
    for (Tensor* tensor : {&args.q, &args.q_out, &*args.k, &*args.k_out, &*args.positions})
        tensor->shape[0] = 0;
    rotary_emb(args);
    ops::rotary_emb(args);
    CHECK(last_run().empty());
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("empty problems launch and load nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: empty problems", fake_gpu(cache)));
}

TEST_CASE("scenario: rotary" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    for (const RotaryStyle style : {RotaryStyle::interleaved, RotaryStyle::half_split}) {
        Rotated actual(random);
        Rotated expected = actual;
        RotaryArgs args = actual.args();
        args.style = style;
        rotary_emb(args);
        CHECK(last_run().starts_with("rotary_emb<format=bf16"));
        reference::Rotary call;
        call.q = expected.q.view();
        call.k = expected.k.view();
        call.q_out = expected.q_out.view();
        call.k_out = expected.k_out.view();
        call.cos = call.sin = expected.cos.view();
        call.positions = expected.positions.view();
        call.style = style_as<reference::RotaryStyle>(style);
        reference::rotary(call);
        JITNEY_CHECK_CLOSE(actual.q_out, expected.q_out, Tolerance{});
        JITNEY_CHECK_CLOSE(actual.k_out, expected.k_out, Tolerance{});
    }
}

TEST_CASE("rotary reaches its kernel as it was meant") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: rotary", fake_gpu(cache)));
}

TEST_CASE("scenario: hot" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem split(decode_shape(20000), random);
    AttentionProblem masked = [&] {
        AttentionShape shape = decode_shape(40);
        shape.mask = MaskKind::heads;
        shape.causal = true;
        return AttentionProblem(shape, random);
    }();
    Rotated rotated(random);
    const auto call_all = [&, split_args = args_of(split), masked_args = args_of(masked),
                           rotary_args = rotated.args()] {
        attention(split_args);
        attention(masked_args);
        ops::attn_prefill(masked_args, ops::Variant::mma);
        rotary_emb(rotary_args);
    };
    call_all();
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const int loads = fake.loads;
    const int allocations = fake.allocations;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 1000; ++i)
        call_all();
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 5000);  // prefill has its mask made into bits
    CHECK(fake.loads == loads);
    CHECK(fake.allocations == allocations);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("a call after the first allocates nothing and loads nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: hot", fake_gpu(cache)));
}

TEST_CASE("scenario: capture" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(3000), random);
    fake.capture_status = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
    try {
        attention(args_of(problem));
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::capture);
        CHECK(std::string(error.what()).find("attn_decode_cluster<head_dim=64") !=
              std::string::npos);
        check_sentence(error.what());
    }
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
    CHECK(fake.allocations == 0);
    fake.capture_status = 0;
    attention(args_of(problem));
    fake.capture_status = 1;
    fake.kernel = nullptr;  // memory of a graph does not exist yet
    attention(args_of(problem));
    CHECK(fake.launches == 2);
}

TEST_CASE("a kernel that is not loaded is a typed error while the stream is captured") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: capture", fake_gpu(cache)));
}

TEST_CASE("scenario: devices" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    const auto run_on = [&random](int device) {
        AttentionProblem problem(decode_shape(100), random);
        const AttentionProblem untouched = problem;
        attention(args_of(problem, {DeviceType::cuda, device}));
        check_kernel_result(problem, untouched);
        return last_run();
    };
    // A thread without a context is lent the primary one of the tensors' device.
    std::string on_second;
    std::jthread([&] { on_second = run_on(1); }).join();
    CHECK(on_second.ends_with("@sm_80"));
    CHECK(run_on(0).ends_with("@sm_90a"));
    CHECK(fake.loads == 2);
    const int launches = fake.launches;
    AttentionProblem problem(decode_shape(100), random);
    // One that has a context is not.
    CUdevice handle{};
    CUcontext first = nullptr;
    REQUIRE(runtime::driver().cuDeviceGet(&handle, 0) == CUDA_SUCCESS);
    REQUIRE(runtime::driver().cuDevicePrimaryCtxRetain(&first, handle) == CUDA_SUCCESS);
    REQUIRE(runtime::driver().cuCtxSetCurrent(first) == CUDA_SUCCESS);
    for (const int device : {1, 2, -1}) {
        try {
            attention(args_of(problem, {DeviceType::cuda, device}));
            FAIL("it ran");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::no_device);
            const std::string name = "GPU " + std::to_string(device);
            CHECK(std::string(error.what()).find(name) != std::string::npos);
            check_sentence(error.what());
        }
    }
    CHECK(fake.launches == launches);
}

TEST_CASE("two devices of different archs in one process") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: devices", fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "90,80"}})));
}

TEST_CASE("scenario: none can" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionShape shape = decode_shape(10);
    shape.head_dim = 1024;
    AttentionProblem problem(shape, random);
    try {
        attention(args_of(problem));
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::unsupported);
        const std::string text = error.what();
        CHECK(text.find("attn_prefill_scalar: head_dim 1024 is above 512") != std::string::npos);
        check_sentence(text);
    }
    CHECK(fake.launches == 0);
}

TEST_CASE("a problem that no kernel can run is refused with every reason") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: none can", fake_gpu(cache)));
}

}  // namespace jitney::tests
