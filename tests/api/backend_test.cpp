// Scopes, the environment, and their precedence.
#include "jitney/backend.hpp"

#include <set>
#include <string_view>
#include <thread>

#include "jitney/attention.hpp"
#include "jitney/rotary.hpp"
#include "operations/all_fields.hpp"
#include "policy/kernels.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {
namespace {

// A small problem that every kernel can run.
struct Small {
    explicit Small(bool gpu, std::int64_t q_len = 2)
        : on_device(gpu), q(DType::bf16, {1, q_len, 2, 64}), out(q) {}

    AttentionArgs args() {
        AttentionArgs args;
        args.q = at(q);
        args.k = args.v = at(kv);
        args.out = at(out);
        return args;
    }
    Tensor at(HostTensor& tensor) const { return on_device ? on_gpu(tensor) : tensor.view(); }

    bool on_device;
    HostTensor q;
    HostTensor kv{DType::bf16, {1, 9, 1, 64}};
    HostTensor out;
};

std::string run_small(bool on_device, std::int64_t q_len = 2) {
    Small small(on_device, q_len);
    attention(small.args());
    return last_run();
}

RotaryArgs rotary_args(HostTensor& q, HostTensor& table) {
    RotaryArgs args;
    args.q = args.q_out = on_gpu(q);
    args.cos = args.sin = on_gpu(table);
    return args;
}

Ended run_with(const std::string& scenario, const Variables& more) {
    const TemporaryDirectory cache;
    return run(scenario, fake_gpu(cache, more));
}

constexpr const char* kWarning = "warn";

}  // namespace

TEST_CASE("every kernel serves an operation that there is") {
    const std::set<std::string_view> calls = {
#define JITNEY_CALL(name, call, Args) #call,
        JITNEY_FOR_EACH_OPERATION(JITNEY_CALL)
#undef JITNEY_CALL
    };
    for (const policy::KernelInfo& kernel : policy::kernels())
        CHECK_MESSAGE(calls.contains(kernel.operation), kernel.name);
}

TEST_CASE("scopes name kernels that exist") {
    try {
        const Scope scope("attn_decode_cuda");
        FAIL("it was accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK(std::string(error.what()).find("attn_decode_cuda") != std::string::npos);
        CHECK(std::string(error.what()).find("attn_decode_mma") != std::string::npos);
        check_sentence(error.what());
    }
}

TEST_CASE("a scope is strict on host tensors") {
    {
        const Scope scope(Backend::reference);
        CHECK(run_small(false) == "reference");
    }
    for (const bool by_name : {false, true}) {
        std::optional<Scope> scope;
        if (by_name) {
            scope.emplace("attn_prefill_mma");
        } else {
            scope.emplace(Backend::jit);
        }
        try {
            run_small(false);
            FAIL("it ran");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::unsupported);
            CHECK(std::string(error.what()).find("host memory") != std::string::npos);
        }
    }
    CHECK(run_small(false) == "reference");
}

TEST_CASE("scopes nest, and belong to their thread") {
    const Scope outer(Backend::jit);
    {
        const Scope inner(Backend::reference);
        CHECK(run_small(false) == "reference");
    }
    CHECK_THROWS_AS(run_small(false), Error);
    std::string ran;
    std::jthread([&ran] { ran = run_small(false); }).join();
    CHECK(ran == "reference");
}

TEST_CASE("scenario: scopes on a GPU" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    CHECK(run_small(true).starts_with("attn_decode_cluster<"));
    for (const char* kernel : {"attn_decode_scalar", "attn_decode_mma", "attn_decode_cluster",
                               "attn_prefill_scalar", "attn_prefill_mma", "attn_prefill_wgmma"}) {
        const Scope scope(kernel);
        CHECK(run_small(true).starts_with(std::string(kernel) + "<head_dim=64"));
    }
    const int launches = fake.launches;
    {
        const Scope scope("attn_decode_mma");
        try {
            run_small(true, 65);
            FAIL("it ran");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::unsupported);
            CHECK(std::string(error.what()).find("attn_decode_mma") != std::string::npos);
            CHECK(std::string(error.what()).find("q_len 65 is above 64") != std::string::npos);
            check_sentence(error.what());
        }
        CHECK(last_run().empty());
    }
    {
        const Scope scope(Backend::reference);
        CHECK_THROWS_AS(run_small(true), Error);
    }
    CHECK(fake.launches == launches);
    {
        // The innermost counts: no kernel is named any more.
        const Scope outer("attn_prefill_scalar");
        const Scope inner(Backend::jit);
        CHECK(run_small(true).starts_with("attn_decode_cluster<"));
    }
    {
        // A kernel binds the calls of its own operation.
        const Scope scope("attn_prefill_scalar");
        HostTensor q(DType::bf16, {1, 2, 2, 8});
        HostTensor table(DType::fp32, {2, 4});
        rotary_emb(rotary_args(q, table));
        CHECK(last_run().starts_with("rotary_emb<"));
        const Scope rotary("rotary_emb");
        CHECK(run_small(true).starts_with("attn_decode_cluster<"));
    }
}

TEST_CASE("scopes on a GPU") {
    REQUIRE_PASSED(run_with("scenario: scopes on a GPU", {}));
}

TEST_CASE("scenario: print what runs" * doctest::skip()) {
    start_software_gpu();
    for (int i = 0; i < 2; ++i) {
        MESSAGE("on the GPU: ", run_small(true));
        MESSAGE("many queries: ", run_small(true, 100));
        MESSAGE("on the host: ", run_small(false));
    }
    const Scope scope("attn_prefill_scalar");
    MESSAGE("in a scope: ", run_small(true));
}

TEST_CASE("the environment steers, and falls back with one warning") {
    const std::string scenario = "scenario: print what runs";
    {
        const Ended ended = run_with(scenario, {});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("on the GPU: attn_decode_cluster<") == 2);
        CHECK(ended.count("on the host: reference") == 2);
        CHECK(ended.count(kWarning) == 0);
    }
    {
        // It can't run 100 queries: another kernel does.
        const Ended ended = run_with(scenario, {{"JITNEY_FORCE", "attn_decode_scalar"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("on the GPU: attn_decode_scalar<") == 2);
        CHECK(ended.count("many queries: attn_prefill_wgmma<") == 2);
        CHECK(ended.count("JITNEY_FORCE asks for attn_decode_scalar") == 1);
        CHECK(ended.count("q_len 100 is above 64") == 1);
        // A scope is above the environment.
        CHECK(ended.count("in a scope: attn_prefill_scalar<") == 1);
        CHECK(ended.count("on the host: reference") == 2);
    }
    {
        const Ended ended = run_with(scenario, {{"JITNEY_FORCE", "attn_fast"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("on the GPU: attn_decode_cluster<") == 2);
        CHECK(ended.count("JITNEY_FORCE is \"attn_fast\"") == 1);
    }
    {
        const Ended ended = run_with(scenario, {{"JITNEY_BACKEND", "reference"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("on the GPU: attn_decode_cluster<") == 2);
        CHECK(ended.count("JITNEY_BACKEND asks for the reference backend") == 1);
    }
    {
        const Ended ended = run_with(scenario, {{"JITNEY_BACKEND", "jit"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("on the host: reference") == 2);
        CHECK(ended.count("asks for kernels on the GPU") == 1);
    }
    {
        const Ended ended = run_with(scenario, {{"JITNEY_BACKEND", "cuda"}});
        REQUIRE_PASSED(ended);
        CHECK(ended.count("JITNEY_BACKEND is \"cuda\"") == 1);
        CHECK(ended.count("on the GPU: attn_decode_cluster<") == 2);
    }
}

}  // namespace jitney::tests
