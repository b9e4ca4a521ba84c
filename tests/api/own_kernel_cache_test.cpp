// A caller's own kernels and the cache: compiled once, found later, prewarmed, without a compiler
// and without a GPU.
#include <algorithm>
#include <latch>
#include <thread>
#include <vector>

#include "tests/api/own_kernel_calls.hpp"

namespace jitney::tests {

TEST_CASE("scenario: own threads" * doctest::skip()) {
    constexpr int count = 8;
    std::latch start(count);
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&start] {
            start.arrive_and_wait();
            const Kernel kernel(scale_code());
            kernel.launch({.grid = {2}});
        });
    }
    threads.clear();
    CHECK(fake_cuda().launches == count);
    CHECK(fake_cuda().loads == 1);
}

TEST_CASE("own kernels: threads and processes compile one kernel once, and later ones find it") {
    const TemporaryDirectory directory;
    const std::string compiles = directory / "compiles";
    const Variables variables = fakes(directory / "cache", {{"FAKE_NVRTC_COMPILES", compiles},
                                                            {"FAKE_NVRTC_DELAY_MS", "300"},
                                                            {"JITNEY_LOG", "info"}});
    Child first("scenario: own threads", variables);
    Child second("scenario: own threads", variables);
    for (Child* child : {&first, &second})
        REQUIRE_PASSED(child->wait());
    const auto count = [&] {
        const std::string lines = read_file(compiles);
        return std::ranges::count(lines, '\n');
    };
    CHECK(count() == 1);
    Variables without = variables;
    without.emplace_back("JITNEY_JIT", "off");
    const Ended warm = run("scenario: own threads", without);
    REQUIRE_PASSED(warm);
    CHECK(warm.count(std::string(kScaleName)) == 1);  // where it came from
    CHECK(count() == 1);
}

TEST_CASE("scenario: own kernel without JIT" * doctest::skip()) {
    const Kernel kernel(scale_code());
    const std::string text = refusal(ErrorCode::not_cached, [&] { kernel.launch({}); });
    CHECK(contains(text, kScaleName));
    CHECK(contains(text, "JITNEY_JIT=off"));
    CHECK(contains(text, "prewarm(\"sm_90a\")"));
    CHECK(contains(text, "jitney prewarm --manifest"));
    CHECK_FALSE(contains(text, "--spec"));
    const PrewarmEntry entry = kernel.prewarm("sm_90a");
    CHECK(entry.status == PrewarmStatus::compiled);
    CHECK(entry.spec == kernel.spec("sm_90a"));
    CHECK(entry.bytes > 0);
    CHECK(kernel.prewarm("sm_90a").status == PrewarmStatus::cached);
    CHECK(kernel.prewarm("sm_80").status == PrewarmStatus::compiled);
    CHECK_NOTHROW(kernel.launch({}));
    CHECK(fake_cuda().launches == 1);
}

TEST_CASE("own kernels: JITNEY_JIT=off names what is missing, and prewarm provides it") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(
        run("scenario: own kernel without JIT", fake_gpu(cache, {{"JITNEY_JIT", "off"}})));
}

TEST_CASE("scenario: own kernel without a GPU" * doctest::skip()) {
    const Kernel kernel(scale_code());
    CHECK(kernel.prewarm("sm_120").status == PrewarmStatus::compiled);
    const std::vector<std::string> specs = {
        "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80"};
    const std::vector<KernelTarget> targets = {{kernel, "sm_120"}, {kernel, "sm_75"}};
    const std::vector<PrewarmEntry> entries = prewarm(specs, targets);
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].spec == specs[0]);
    CHECK(entries[1].spec == kernel.spec("sm_120"));
    CHECK(entries[1].status == PrewarmStatus::cached);
    CHECK(entries[2].status == PrewarmStatus::compiled);
    const std::vector<KernelTarget> bad = {{kernel, "sm_86"}, {kernel, "sm_90"}};
    CHECK_THROWS_AS(prewarm({}, bad), Error);
    CHECK(kernel.prewarm("sm_86").status == PrewarmStatus::compiled);  // not by that call
    CHECK(contains(refusal(ErrorCode::no_device, [&] { kernel.launch({}); }), "no CUDA driver"));
    CHECK(contains(refusal(ErrorCode::no_device, [&] { kernel.load(); }), "no CUDA driver"));
}

TEST_CASE("own kernels: without a GPU they are made and compiled, and not launched") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own kernel without a GPU",
                       fake_gpu(cache, {{"JITNEY_LIBCUDA", cache / "none"}})));
}

TEST_CASE("scenario: own kernel that fails" * doctest::skip()) {
    const Kernel kernel(scale_code());
    for (int i = 0; i < 2; ++i) {  // a failure is not kept
        try {
            kernel.launch({});
            FAIL("it ran");
        } catch (const CompileError& error) {
            CHECK(error.specialization() == kernel.spec("sm_90a"));
            CHECK(contains(error.log(), "the fake was told to fail"));
            CHECK(contains(error.what(), kScaleName));
        }
    }
    CHECK(contains(kernel.prewarm("sm_80").error, "the fake was told to fail"));
}

TEST_CASE("own kernels: a compile that fails tells the kernel and the compiler's log") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own kernel that fails",
                       fake_gpu(cache, {{"FAKE_NVRTC_FAIL_WHILE", cache.path()}})));
}

}  // namespace jitney::tests
