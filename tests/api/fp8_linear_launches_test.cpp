// The linear layer on FP8 with a driver that computes in software: what it launches, what memory it
// takes, and that a call that throws has launched nothing and left its state as it was.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "jitney/backend.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/fp8_linear_problem.hpp"
#include "tests/support/fp8_quantize_problem.hpp"

namespace jitney::tests {
namespace {

Tensor host(HostTensor& tensor) {
    return tensor.view();
}
Tensor gpu(HostTensor& tensor) {
    return on_gpu(tensor);
}

Fp8LinearProblem made(const Fp8LinearCase& test) {
    Fp8LinearProblem problem(test);
    Random random(1);
    problem.fill(random);
    fp8_state_reset(problem.state.view());
    return problem;
}

// That the call throws so, and has done nothing before.
void check_does_nothing(Fp8LinearProblem& problem, ErrorCode code,
                        const std::function<void()>& call) {
    const fake::Cuda& fake = fake_cuda();
    Fp8LinearProblem before = problem;
    const int launches = fake.launches;
    const int allocations = fake.allocations;
    try {
        call();
        FAIL_CHECK("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == code);
        check_sentence(error.what());
    }
    CHECK(last_run().empty());
    CHECK(fake.launches == launches);
    if (code != ErrorCode::out_of_memory) CHECK(fake.allocations == allocations);
    CHECK(std::ranges::equal(problem.state.storage(), before.state.storage()));
    CHECK(std::ranges::equal(problem.y.storage(), before.y.storage()));
    CHECK(std::ranges::equal(problem.grad_x.storage(), before.grad_x.storage()));
    CHECK(std::ranges::equal(problem.x_codes.storage(), before.x_codes.storage()));
}

void check_same(const HostTensor& actual, const HostTensor& expected) {
    CHECK(differing(actual, expected) == 0);
}

void check_same(const Fp8LinearProblem& actual, const Fp8LinearProblem& expected) {
    check_same(actual.state, expected.state);
    check_same(actual.y, expected.y);
    check_same(actual.x_codes, expected.x_codes);
    check_same(actual.grad_x, expected.grad_x);
    check_same(actual.grad_weight, expected.grad_weight);
    check_same(actual.grad_bias, expected.grad_bias);
}

}  // namespace

TEST_CASE("scenario: launches of fp8_linear" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::dynamic}) {
        for (const bool saved : {true, false}) {
            Fp8LinearCase test;
            test.recipe.scaling = scaling;
            test.saved = saved;
            test.rows = 700;  // whose sums are divided
            Fp8LinearProblem actual = made(test);
            Fp8LinearProblem expected = actual;
            for (int step = 0; step < 3; ++step) {
                const int launches = fake.launches;
                fp8_linear(actual.forward(gpu));
                CHECK(last_run().starts_with("fp8_gemm_"));
                CHECK(fake.launches == launches + (scaling == Fp8Scaling::dynamic ? 6 : 4));
                fp8_linear(expected.forward(host));
                if (!saved) continue;
                fp8_linear_backward(actual.backward(gpu));
                fp8_linear_backward(expected.backward(host));
            }
            check_same(actual, expected);
            CHECK(fake.synchronizations == 0);
        }
    }
}

TEST_CASE("fp8_linear computes with kernels what it does on the host") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: launches of fp8_linear", fake_gpu(cache)));
}

TEST_CASE("scenario: fp8_linear without features" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::dynamic}) {
        for (const auto& [in, out] : {std::pair{0, 17}, std::pair{40, 0}}) {
            Fp8LinearCase test;
            test.recipe.scaling = scaling;
            test.in = in;
            test.out = out;
            Fp8LinearProblem actual = made(test);
            actual.scales.fill([](std::int64_t) { return std::nan(""); });
            Fp8LinearProblem expected = actual;
            for (int step = 0; step < 2; ++step) {
                fp8_linear(actual.forward(gpu));
                CHECK(last_run().starts_with(out != 0 ? "fp8_gemm_" : ""));
                CHECK(last_run().empty() == (out == 0));
                fp8_linear(expected.forward(host));
                fp8_linear_backward(actual.backward(gpu));
                CHECK(last_run().starts_with(out != 0 ? "column_sums<" : "fp8_gemm_"));
                fp8_linear_backward(expected.backward(host));
                CHECK(last_run() == "reference");
            }
            check_same(actual, expected);
            CHECK(fake.synchronizations == 0);
        }
    }
    // Sums alone.
    Fp8LinearProblem problem = made({});
    fp8_linear(problem.forward(gpu));
    Fp8LinearBackwardArgs args = problem.backward(gpu);
    args.grad_x.reset();
    args.grad_weight.reset();
    fp8_linear_backward(args);
    CHECK(last_run().starts_with("column_sums<"));
    fp8_linear_backward(problem.backward(gpu));
    CHECK(last_run().starts_with("fp8_gemm_"));
}

TEST_CASE(
    "fp8_linear without in_features or out_features computes with kernels what it does on the "
    "host") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: fp8_linear without features", fake_gpu(cache)));
}

TEST_CASE("scenario: memory of fp8_linear" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Fp8LinearCase test;
    test.saved = false;
    test.rows = 700;
    Fp8LinearProblem problem = made(test);
    const auto step = [&] {
        fp8_linear(problem.forward(gpu));
        fp8_linear_backward(problem.backward(gpu));
    };
    problem.test.saved = true;
    fp8_linear(problem.forward(gpu));  // for the backward pass
    problem.test.saved = false;
    step();
    // The stream's own memory, whatever the parts of the call need of it at a time.
    const int allocations = fake.allocations;
    const int clears = fake.clears;
    for (int i = 0; i < 5; ++i)
        step();
    CHECK(fake.allocations == allocations);
    CHECK(fake.clears == clears);
    CHECK(fake.plain_allocations == 0);

    // In a capture once a call, and freed in the graph.
    fake.capture_status = 1;
    step();
    CHECK(fake.allocations == allocations + 2);
    CHECK(fake.frees >= 2);

    // With the caller's there is no allocation: it holds codes, partial sums and counters.
    alignas(256) static std::byte memory[1 << 20];
    Fp8LinearArgs args = problem.forward(gpu);
    Fp8LinearBackwardArgs backward = problem.backward(gpu);
    args.workspace = {memory, workspace_bytes(args)};
    backward.workspace = {memory, workspace_bytes(backward)};
    REQUIRE(args.workspace.bytes >= (700 + 17) * 48);
    REQUIRE(args.workspace.bytes <= sizeof memory);
    REQUIRE(backward.workspace.bytes >= 700 * 32);
    REQUIRE(backward.workspace.bytes <= sizeof memory);
    init_workspace(args.workspace);
    Fp8LinearProblem expected = problem;
    fp8_linear(args);
    fp8_linear_backward(backward);
    CHECK(fake.allocations == allocations + 2);
    fp8_linear(expected.forward(host));
    fp8_linear_backward(expected.backward(host));
    check_same(problem, expected);

    // Sizes are known before addresses are.
    Fp8LinearArgs unplaced = args;
    unplaced.workspace = {};
    unplaced.x.data = unplaced.weight.data = unplaced.y.data = unplaced.state.data = nullptr;
    CHECK(workspace_bytes(unplaced) == args.workspace.bytes);

    const int launches = fake.launches;
    args.workspace.bytes -= 1;
    CHECK_THROWS_WITH_AS(fp8_linear(args), doctest::Contains("workspace"), Error);
    backward.workspace.data = memory + 16;
    CHECK_THROWS_WITH_AS(fp8_linear_backward(backward), doctest::Contains("align"), Error);
    CHECK(fake.launches == launches);
}

TEST_CASE("fp8_linear takes its memory of the stream's, once a call") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: memory of fp8_linear", fake_gpu(cache)));
}

TEST_CASE("scenario: captured fp8_linear" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Fp8LinearProblem problem = made({});
    const auto forward = [&] { fp8_linear(problem.forward(gpu)); };
    // What is wanted of a backward pass: grad_x, grad_weight, grad_bias.
    const auto backward = [&](int wanted) {
        Fp8LinearBackwardArgs args = problem.backward(gpu);
        if ((wanted & 1) == 0) args.grad_x.reset();
        if ((wanted & 2) == 0) args.grad_weight.reset();
        if ((wanted & 4) == 0) args.grad_bias.reset();
        fp8_linear_backward(args);
    };
    const auto check_captured = [&](bool is_loaded, const std::function<void()>& call) {
        fake.capture_status = 1;
        if (is_loaded) {
            call();
        } else {
            check_does_nothing(problem, ErrorCode::capture, call);
        }
        fake.capture_status = 0;
    };
    check_captured(false, forward);

    // With the cast alone, and with cast and product: the update of the state is not there.
    Fp8QuantizeArgs cast;
    cast.x = gpu(problem.x);
    cast.out = gpu(problem.x_codes);
    HostTensor number(DType::fp32, {1});
    number.set(0, 1.0);
    cast.amax = gpu(number);
    fp8_quantize(cast);
    check_captured(false, forward);
    Fp8GemmArgs product;
    product.a = gpu(problem.x_codes);
    product.b = gpu(problem.weight_codes);
    product.trans_b = true;
    product.out = gpu(problem.y);
    product.dequant_scale = gpu(number);
    product.bias = gpu(problem.bias);
    fp8_gemm(product);
    check_captured(false, forward);
    forward();
    check_captured(true, forward);

    // Each of the backward pass's kernels in turn, the last of them the sums.
    check_captured(false, [&] { backward(7); });
    backward(1);
    check_captured(true, [&] { backward(1); });
    check_captured(false, [&] { backward(3); });
    backward(3);
    check_captured(true, [&] { backward(3); });
    check_captured(false, [&] { backward(7); });
    check_captured(false, [&] { backward(5); });
    backward(7);
    check_captured(true, [&] { backward(7); });
}

TEST_CASE("fp8_linear launches nothing in a capture while one of its kernels is not loaded") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: captured fp8_linear", fake_gpu(cache)));
}

TEST_CASE("scenario: fp8_linear on an older GPU" * doctest::skip()) {
    start_software_gpu();
    // Whose casts could run.
    Fp8LinearProblem problem = made({});
    check_does_nothing(problem, ErrorCode::unsupported, [&] { fp8_linear(problem.forward(gpu)); });
    check_does_nothing(problem, ErrorCode::unsupported,
                       [&] { fp8_linear_backward(problem.backward(gpu)); });
}

TEST_CASE("fp8_linear on a GPU without FP8 launches nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: fp8_linear on an older GPU",
                       fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "80"}})));
}

TEST_CASE("scenario: fp8_linear without memory" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    fake.allocation_result = 2;  // CUDA_ERROR_OUT_OF_MEMORY
    Fp8LinearProblem problem = made({});
    check_does_nothing(problem, ErrorCode::out_of_memory,
                       [&] { fp8_linear(problem.forward(gpu)); });
    check_does_nothing(problem, ErrorCode::out_of_memory,
                       [&] { fp8_linear_backward(problem.backward(gpu)); });
    // What only the checks of one of its parts refuse is refused as early.
    fake.allocation_result = 0;
    for (const auto& view : {host, gpu}) {
        Fp8LinearArgs args = problem.forward(view);
        args.saved->weight_codes.data = args.weight.data;
        check_does_nothing(problem, ErrorCode::invalid_argument, [&] { fp8_linear(args); });
    }
}

TEST_CASE("fp8_linear that finds no memory, or is refused late, launches nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: fp8_linear without memory", fake_gpu(cache)));
}

}  // namespace jitney::tests
