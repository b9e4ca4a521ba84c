// The calling thread's current context and errno are the same after every call.
#include <cuda.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/explain.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/plan.hpp"
#include "jitney/prewarm.hpp"
#include "jitney/rotary.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/fp8_linear_problem.hpp"

namespace jitney::tests {
namespace {

CUcontext current() {
    CUcontext context = nullptr;
    CHECK(runtime::driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    return context;
}

using Calls = std::vector<std::pair<const char*, std::function<void()>>>;

// Each of them cold, warm, and where it fails for want of memory.
void check_calls(const Calls& calls, CUcontext context) {
    for (const auto& [name, call] : calls) {
        CAPTURE(name);
        for (int i = 0; i < 3; ++i) {
            fake_cuda().launch_result = i == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
            errno = 77;
            try {
                call();
            } catch (const Error& error) {
                CHECK(i == 2);
            }
            CHECK(errno == 77);
            CHECK(current() == context);
        }
        fake_cuda().launch_result = CUDA_SUCCESS;
    }
}

}  // namespace

TEST_CASE("scenario: calls of a thread" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(2000), random);
    const AttentionArgs args = args_of(problem);
    Fp8LinearProblem layer(Fp8LinearCase{});
    layer.fill(random);
    const auto gpu = [](HostTensor& tensor) { return on_gpu(tensor); };
    const Fp8LinearArgs forward = layer.forward(gpu);
    const Fp8LinearBackwardArgs backward = layer.backward(gpu);
    Fp8QuantizeArgs cast;
    cast.x = gpu(layer.x);
    cast.out = gpu(layer.x_codes);
    HostTensor q(DType::bf16, {1, 3, 2, 8});
    HostTensor table(DType::fp32, {3, 4});
    RotaryArgs rotary;
    rotary.q = rotary.q_out = gpu(q);
    rotary.cos = rotary.sin = gpu(table);
    rotary.style = RotaryStyle::interleaved;
    HostTensor part(DType::bf16, {2, 1, 3, 2, 8});
    HostTensor lse(DType::fp32, {2, 1, 2, 3});
    MergeStatesArgs merge;
    merge.out = gpu(q);
    const PartialState parts[] = {{gpu(part), gpu(lse)}};
    merge.parts = parts;
    alignas(256) static std::byte memory[1 << 16];
    const Calls calls = {
        {"attention", [&] { attention(args); }},
        {"attn_decode", [&] { ops::attn_decode(args, ops::Variant::mma); }},
        {"a plan", [&] { AttentionPlan(args).run(args); }},
        {"rotary_emb", [&] { rotary_emb(rotary); }},
        {"ops::rotary_emb", [&] { ops::rotary_emb(rotary); }},
        {"merge_states", [&] { merge_states(merge); }},
        {"fp8_quantize", [&] { fp8_quantize(cast); }},
        {"ops::fp8_quantize", [&] { ops::fp8_quantize(cast); }},
        {"fp8_state_reset", [&] { fp8_state_reset(forward.state); }},
        {"fp8_linear", [&] { fp8_linear(forward); }},
        {"fp8_linear_backward", [&] { fp8_linear_backward(backward); }},
        {"init_workspace",
         [&] {
             init_workspace({memory, sizeof memory});
         }},
        {"workspace_bytes", [&] { (void)workspace_bytes(forward); }},
        {"explain", [&] { (void)explain(args); }},
        {"prewarm",
         [&] {
             const std::vector<std::string> specs = {explain(args, "sm_80").chosen};
             (void)prewarm(specs);
         }},
    };
    std::jthread([&] { check_calls(calls, nullptr); }).join();
    std::jthread([&] {
        const runtime::DeviceScope scope(0);
        check_calls(calls, current());
    }).join();
    std::jthread([&] {
        errno = 77;
        AttentionArgs bad = args;
        bad.k.shape[3] += 1;
        CHECK_THROWS_AS(attention(bad), Error);
        CHECK(errno == 77);
        CHECK(current() == nullptr);
    }).join();
}

TEST_CASE("calls leave their thread's context and errno as they were") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: calls of a thread", fake_gpu(cache)));
}

}  // namespace jitney::tests
