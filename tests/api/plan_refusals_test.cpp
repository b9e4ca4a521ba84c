// Calls that a plan refuses, because it was not made for them.
#include <cstdint>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {

TEST_CASE("scenario: calls that a plan refuses" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
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

}  // namespace jitney::tests
