// Cold and warm: what a process compiles, a second one finds on disk.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "runtime/runtime.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/child.hpp"

namespace jitney::tests {
namespace {

AttentionShape rare_shape() {
    AttentionShape shape;
    shape.q_len = 2;
    shape.kv_len = 30;
    shape.q_heads = 2;
    shape.head_dim = 53;  // of no other test
    return shape;
}

void run_rare() {
    Random random = Random::fresh();
    AttentionProblem problem(rare_shape(), random);
    const DeviceProblem device(problem);
    attention(device.args(problem.shape));
    const HostTensor lse = device.lse.download();
    check_against_reference(problem, device.out.download(), &lse);
}

int run_without_jit(const std::string& cache, const std::string& test) {
    return run_child(test, "JITNEY_JIT=off JITNEY_CACHE_DIR='" + cache + "'");
}

}  // namespace

TEST_CASE("the first call compiles, the second one does not, and another process loads it") {
    const runtime::RuntimeCounts before = runtime::runtime().counts();
    run_rare();
    const runtime::RuntimeCounts cold = runtime::runtime().counts();
    CHECK(cold.loaded == before.loaded + 1);
    // Not where the directory that the caller named has it already.
    CHECK(cold.compiled <= before.compiled + 1);
    run_rare();
    const runtime::RuntimeCounts warm = runtime::runtime().counts();
    CHECK(warm.loaded == cold.loaded);
    CHECK(warm.compiled == cold.compiled);
    CHECK(run_without_jit(std::getenv("JITNEY_CACHE_DIR"), "child: warm") == 0);

    const std::string empty = std::string(std::getenv("JITNEY_CACHE_DIR")) + "-empty";
    CHECK(run_without_jit(empty, "child: forbidden") == 0);
    std::filesystem::remove_all(empty);
}

TEST_CASE("child: warm" * doctest::skip()) {
    run_rare();
    CHECK(runtime::runtime().counts().compiled == 0);
    CHECK(runtime::runtime().counts().loaded == 1);
}

TEST_CASE("child: forbidden" * doctest::skip()) {
    try {
        run_rare();
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::not_cached);
        CHECK(std::string(error.what()).find("prewarm --spec") != std::string::npos);
    }
}

}  // namespace jitney::tests
