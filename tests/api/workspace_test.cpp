// Memory of the caller's for what kernels need beside the tensors.
#include "jitney/workspace.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "jitney/attention.hpp"
#include "operations/attention/reference.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

TEST_CASE("scenario: workspaces" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    AttentionProblem problem(decode_shape(20000), random);
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
    AttentionProblem other(decode_shape(30), random);
    AttentionArgs plain = args_of(other);
    CHECK(workspace_bytes(plain) == 0);
    plain.workspace = {aligned, 512};
    attention(plain);
    CHECK(fake.launches == 1);

    // A batch of more divided tiles than the counters have room for brings its own.
    AttentionShape wide = decode_shape(200);
    wide.batch = 6000;
    wide.kv_heads = wide.q_heads = 4;
    wide.head_dim = 8;
    AttentionProblem many(wide, random);
    AttentionArgs invariant = args_of(many);
    invariant.batch_invariant = true;
    CHECK(workspace_bytes(invariant) == 0);
    invariant.k.shape[1] = invariant.v.shape[1] = 1000;
    invariant.k.data = invariant.v.data = nullptr;
    CHECK(workspace_bytes(invariant) > 24000 * 4 + 65536);
}

TEST_CASE("scenario: more counters than have room at the beginning" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    ServingShape shape;
    shape.q_lens.assign(2500, 1);
    shape.kv_lens.assign(2500, 3);
    shape.kv_lens[2499] = 20;
    shape.kv_heads = 8;
    shape.group = 1;
    shape.head_dim = 8;
    shape.room = 20;
    shape.keys = KeyForm::token_table;
    ServingProblem problem(shape, random);
    const ServingProblem untouched = problem;
    AttentionArgs args = serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0}));
    args.batch_invariant = true;
    args.max_kv_len = 2000;  // so that the keys of each request could be divided
    const std::size_t bytes = workspace_bytes(args);
    REQUIRE(bytes > (std::size_t{64} << 10) + std::size_t{4} * 2500 * 8);

    // Whatever stood there before: what has no room at the beginning is cleared by each launch.
    std::vector<std::byte> memory(bytes + 512, std::byte{0xAB});
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::size_t skip = 256 - address % 256;
    args.workspace = {memory.data() + skip, bytes};
    init_workspace(args.workspace);
    for (int launch = 1; launch <= 2; ++launch) {
        attention(args);
        CHECK(fake.clears == 1 + launch);
        CHECK(fake.cleared_bytes == 4 * 2500 * 8);
        ServingProblem expected = untouched;
        reference::attention(serving_call<reference::Attention>(shape, expected.views()));
        JITNEY_CHECK_CLOSE(problem.at("out"), expected.at("out"), (Tolerance{1e-5, 8e-3}));
    }
    for (std::size_t i = 0; i < skip; ++i)
        REQUIRE(memory[i] == std::byte{0xAB});
    for (std::size_t i = skip + bytes; i < memory.size(); ++i)
        REQUIRE(memory[i] == std::byte{0xAB});
}

TEST_CASE("counters beyond the first 64 KiB of a workspace lie apart and begin at zero") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: more counters than have room at the beginning", fake_gpu(cache)));
}

TEST_CASE("workspaces that can't be meant are refused") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: workspaces", fake_gpu(cache)));
}

}  // namespace jitney::tests
