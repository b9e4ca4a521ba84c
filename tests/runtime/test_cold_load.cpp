#include <cuda.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.hpp"
#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/device.hpp"
#include "runtime/prewarm.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;
using tests::fake_cuda;
using tests::fakes;
using tests::TemporaryDirectory;
using tests::tiny_describe;
using tests::tiny_key;

namespace {

const Kernel& load(int arch = 90, int factor = 3, int device = 0) {
    return runtime::runtime().kernel(tiny_key(arch, factor), device, tiny_describe(), nullptr);
}

// The error of a load, which is expected to fail.
Error failure(int factor = 3) {
    try {
        load(90, factor);
    } catch (const Error& error) {
        return error;
    }
    FAIL("loaded");
    return Error(ErrorCode::internal, "");
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

long lines_of(const std::string& path) {
    const std::string text = tests::read_file(path);
    return std::count(text.begin(), text.end(), '\n');
}

// An entry of the tiny kernel, whoever made it.
void put_entry(const std::string& directory, const std::string& compiler,
               const std::string& payload) {
    cache::Options options;
    options.private_root = directory;
    cache::Store store(options);
    cache::Entry entry;
    entry.compiler = compiler;
    entry.lowered_name = "_Zname";
    entry.payload = payload;
    REQUIRE(store.put(key_of(tests::tiny_source()), entry));
}

const std::string kSound =
    "\x7f"
    "ELF sound";

}  // namespace

TEST_CASE("scenario: one load" * doctest::skip()) {
    current_device();
    load();
    CHECK(runtime::runtime().find(tiny_key(), 0) != nullptr);
    const RuntimeCounts counts = runtime::runtime().counts();
    std::printf("compiled: %d\n", static_cast<int>(counts.compiled));
    std::printf("rejected: %d\n", static_cast<int>(counts.rejected));
    std::printf("mapped: %s\n", tests::is_mapped("libnvrtc") ? "yes" : "no");
    CHECK(fake_cuda().relaxed_loads == fake_cuda().loads);
}

TEST_CASE("the first process compiles; the next one loads, and does not open NVRTC") {
    const TemporaryDirectory root;
    const tests::Variables variables =
        fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"}, {"JITNEY_LOG", "info"}});
    const tests::Ended cold = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(cold);
    CHECK(cold.value("compiled") == "1");
    CHECK(cold.value("mapped") == "yes");
    CHECK(cold.count("tiny_scale<factor=3>@sm_90a: compiled (nvrtc13.0, ") == 1);
    const tests::Ended warm = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(warm);
    CHECK(warm.value("compiled") == "0");
    CHECK(warm.value("mapped") == "no");
    CHECK(warm.count("tiny_scale<factor=3>@sm_90a: from " + (root / "cache")) == 1);
    CHECK(lines_of(root / "compiles") == 1);
}

TEST_CASE("a prewarmed cache needs no NVRTC, and JITNEY_JIT=off takes what is there") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: one load", fakes(root / "cache")));
    tests::Variables variables = fakes(root / "cache", {{"JITNEY_JIT", "off"}});
    variables[1].second = root / "no-nvrtc";
    REQUIRE_PASSED(tests::run("scenario: one load", variables));
    variables.pop_back();
    REQUIRE_PASSED(tests::run("scenario: one load", variables));
}

TEST_CASE("scenario: compiling is forbidden" * doctest::skip()) {
    current_device();
    const Error error = failure();
    CHECK(error.code() == ErrorCode::not_cached);
    const std::string what = error.what();
    CHECK(has(what, "tiny_scale<factor=3>@sm_90a is not in the cache"));
    CHECK(has(what, "jitney prewarm --spec 'tiny_scale<factor=3>@sm_90a'"));
    CHECK(has(what, std::getenv("JITNEY_CACHE_DIR")));
    CHECK_FALSE(tests::is_mapped("libnvrtc"));
}

TEST_CASE("JITNEY_JIT=off names the missing kernel and the command that makes it") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: compiling is forbidden",
                              fakes(root / "cache", {{"JITNEY_JIT", "off"}})));
}

TEST_CASE("scenario: capture" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = fake_cuda();
    const auto refused = [&fake] {
        const Error error = failure();
        CHECK(error.code() == ErrorCode::capture);
        CHECK(has(error.what(), "tiny_scale<factor=3>@sm_90a is not loaded yet"));
        CHECK(fake.loads == 0);
        CHECK_FALSE(tests::is_mapped("libnvrtc"));
    };
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    refused();
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    refused();
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    fake.capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    refused();
    fake.capture_result = 0;
    const Kernel& kernel = load();
    // What is loaded is found while a stream is captured.
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CHECK(&load() == &kernel);
}

TEST_CASE("nothing is loaded or compiled while a stream is captured") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: capture", fakes(root / "cache")));
}

TEST_CASE("scenario: many threads" * doctest::skip()) {
    std::vector<std::thread> threads;
    std::vector<const Kernel*> kernels(8);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        threads.emplace_back([&kernels, i] {
            current_device();
            kernels[i] = &load();
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const Kernel* kernel : kernels)
        CHECK(kernel == kernels.front());
    CHECK(fake_cuda().loads == 1);
}

TEST_CASE("threads that want one kernel compile it once") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: many threads",
                              fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"},
                                                     {"FAKE_NVRTC_DELAY_MS", "100"}})));
    CHECK(lines_of(root / "compiles") == 1);
}

TEST_CASE("scenario: a failure is no success" * doctest::skip()) {
    current_device();
    const std::string failing = std::getenv("FAKE_NVRTC_FAIL_WHILE");
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            load();
            FAIL("loaded");
        } catch (const CompileError& error) {
            CHECK(error.specialization() == "tiny_scale<factor=3>@sm_90a");
            CHECK(has(error.log(), "told to fail"));
        }
    }
    CHECK(fake_cuda().loads == 0);
    std::filesystem::remove(failing);
    CHECK(load().handle != nullptr);
}

TEST_CASE("a compile that failed is tried anew") {
    const TemporaryDirectory root;
    tests::write_file(root / "failing", "");
    REQUIRE_PASSED(
        tests::run("scenario: a failure is no success",
                   fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"},
                                          {"FAKE_NVRTC_FAIL_WHILE", root / "failing"}})));
    CHECK(lines_of(root / "compiles") == 3);
}

TEST_CASE("a sound checksum round a garbage cubin costs one compile, once") {
    const TemporaryDirectory root;
    put_entry(root / "cache", "nvrtc13.0", "garbage");
    const tests::Variables variables =
        fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"}});
    const tests::Ended first = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(first);
    CHECK(first.value("rejected") == "1");
    CHECK(first.value("compiled") == "1");
    CHECK(first.count("is not used") == 1);
    const tests::Ended second = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(second);
    CHECK(second.value("rejected") == "0");
    CHECK(second.value("compiled") == "0");
}

TEST_CASE("an entry that the driver refuses gives way to an older one") {
    const TemporaryDirectory root;
    put_entry(root / "cache", "nvrtc13.9", "garbage");
    put_entry(root / "cache", "nvrtc12.8", kSound);
    tests::Variables variables = fakes(root / "cache");
    SUBCASE("with compiling forbidden") {
        variables.emplace_back("JITNEY_JIT", "off");
    }
    SUBCASE("with a compiler at hand") {}
    const tests::Ended ended = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(ended);
    CHECK(ended.value("rejected") == "1");
    CHECK(ended.value("compiled") == "0");
}

TEST_CASE("the entry of the compiler at hand comes before newer ones") {
    const TemporaryDirectory root;
    put_entry(root / "cache", "nvrtc13.9", "garbage");
    put_entry(root / "cache", "nvrtc13.0", kSound);
    const tests::Ended ended = tests::run("scenario: one load", fakes(root / "cache"));
    REQUIRE_PASSED(ended);
    CHECK(ended.value("rejected") == "0");
}

TEST_CASE("scenario: the driver refuses all" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = fake_cuda();
    fake.load_result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    fake.refused_loads = -1;
    const Error error = failure();
    CHECK(error.code() == ErrorCode::driver);
    std::printf("problem: %s\n", error.what());
    // Not remembered: with a driver that is willing, the next call succeeds.
    fake.refused_loads = 0;
    CHECK(load().handle != nullptr);
}

TEST_CASE("a driver older than the compiler is named, with both versions and the mend") {
    const TemporaryDirectory root;
    const tests::Ended older = tests::run("scenario: the driver refuses all",
                                          fakes(root / "cache", {{"FAKE_CUDA_VERSION", "12040"}}));
    REQUIRE_PASSED(older);
    const std::string problem = older.value("problem");
    CHECK(has(problem, "tiny_scale<factor=3>@sm_90a can't be loaded"));
    CHECK(has(problem, "the driver supports CUDA 12.4 and refuses what nvrtc13.0 made"));
    CHECK(has(problem, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"));
    CHECK(has(problem, "update the driver to one for CUDA 13.0 or newer"));
    CHECK(has(problem, "JITNEY_LIBNVRTC"));
}

TEST_CASE("scenario: a fault that is not the entry's" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = fake_cuda();
    fake.load_result = CUDA_ERROR_OUT_OF_MEMORY;
    fake.refused_loads = 1;
    CHECK(failure().code() == ErrorCode::out_of_memory);
    CHECK(fake.loads == 1);
    load();
    CHECK(runtime::runtime().counts().compiled == 0);  // the entry was not thrown away
}

TEST_CASE("an entry is not rejected for a fault of the device") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: one load", fakes(root / "cache")));
    REQUIRE_PASSED(tests::run("scenario: a fault that is not the entry's", fakes(root / "cache")));
}

TEST_CASE("scenario: lazy objections" * doctest::skip()) {
    current_device();
    fake_cuda().function_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    CHECK(failure().code() == ErrorCode::driver);
    CHECK(fake_cuda().unloads == fake_cuda().loads);
}

TEST_CASE("what the driver objects to only when the code is needed is found at load") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: lazy objections", fakes(root / "cache")));
}

TEST_CASE("scenario: devices of two archs" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = fake_cuda();
    const Kernel& first = load(90, 3, 0);
    const Kernel& second = load(80, 3, 1);
    const Kernel& third = load(90, 3, 2);
    CHECK(fake.loads == 2);  // one library an arch
    CHECK(fake.shared_grants == 3);
    CHECK(first.handle == third.handle);
    CHECK(first.handle != second.handle);
    CHECK(&first != &third);
    CHECK(current_device().ordinal == 0);
    try {
        load(90, 3000, 0);
        FAIL("loaded");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::unsupported);
        CHECK(has(error.what(), "bytes of shared memory a block"));
    }
}

TEST_CASE("one process serves devices of different archs") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run("scenario: devices of two archs",
                              fakes(root / "cache", {{"FAKE_CUDA_DEVICES", "90,80,90"},
                                                     {"FAKE_NVRTC_COMPILES", root / "compiles"}})));
    const std::string compiles = tests::read_file(root / "compiles");
    CHECK(has(compiles, "--gpu-architecture=sm_90a "));
    CHECK(has(compiles, "--gpu-architecture=sm_80 "));
}

TEST_CASE("an arch that the compiler does not know is served by PTX") {
    const TemporaryDirectory root;
    const tests::Variables variables =
        fakes(root / "cache", {{"FAKE_NVRTC_ARCHS", "75,80,86"},
                               {"FAKE_NVRTC_COMPILES", root / "compiles"},
                               {"JITNEY_LOG", "info"}});
    REQUIRE_PASSED(tests::run("scenario: one load", variables));
    CHECK(has(tests::read_file(root / "compiles"), "--gpu-architecture=compute_86 "));
    const tests::Ended warm = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(warm);
    CHECK(warm.count(".ptx (") == 1);
    CHECK(lines_of(root / "compiles") == 1);
}

TEST_CASE("an unwritable cache costs a compile, nothing else") {
    const TemporaryDirectory root;
    tests::write_file(root / "cache", "a file where the directory should be");
    const tests::Ended ended = tests::run("scenario: one load", fakes(root / "cache"));
    REQUIRE_PASSED(ended);
    CHECK(ended.value("compiled") == "1");
}

TEST_CASE("scenario: prewarm" * doctest::skip()) {
    const auto first = prewarm(tests::tiny_source());
    CHECK(first.status == PrewarmStatus::compiled);
    CHECK(first.bytes > 0);
    CHECK(first.error.empty());
    const auto again = prewarm(tests::tiny_source());
    CHECK(again.status == PrewarmStatus::cached);
    CHECK(again.bytes == first.bytes);
    auto wrong = tests::tiny_source();
    wrong.arch = "sm_20";
    const auto failed = prewarm(wrong);
    CHECK(failed.status == PrewarmStatus::failed);
    CHECK(has(failed.error, "sm_20 is older than sm_75"));
    CHECK_FALSE(tests::is_mapped("libcuda.so.1"));
}

TEST_CASE("prewarm needs no GPU, and what it makes is what a load finds") {
    const TemporaryDirectory root;
    const tests::Variables variables =
        fakes(root / "cache", {{"FAKE_NVRTC_COMPILES", root / "compiles"}});
    tests::Variables without_driver = variables;
    without_driver[0].second = root / "no-driver";
    REQUIRE_PASSED(tests::run("scenario: prewarm", without_driver));
    const tests::Ended ended = tests::run("scenario: one load", variables);
    REQUIRE_PASSED(ended);
    CHECK(ended.value("compiled") == "0");
    CHECK(lines_of(root / "compiles") == 1);
}

TEST_CASE("scenario: prewarm where nothing can be kept" * doctest::skip()) {
    const auto result = prewarm(tests::tiny_source());
    CHECK(result.status == PrewarmStatus::failed);
    CHECK(has(result.error, "could not be kept"));
}

TEST_CASE("scenario: threads prewarm one key and keep nothing" * doctest::skip()) {
    std::vector<PrewarmResult> results(4);
    {
        std::vector<std::jthread> threads;
        for (PrewarmResult& result : results)
            threads.emplace_back([&result] { result = prewarm(tests::tiny_source()); });
    }
    for (const PrewarmResult& result : results) {
        CHECK(result.status == PrewarmStatus::failed);
        CHECK(has(result.error, "could not be kept"));
    }
}

TEST_CASE("what a neighbour compiled and could not keep is on no disk for those who waited") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(tests::run(
        "scenario: threads prewarm one key and keep nothing",
        fakes(root / "cache", {{"JITNEY_CACHE_MAX_BYTES", "10"}, {"FAKE_NVRTC_DELAY_MS", "300"}})));
}

TEST_CASE("a prewarm that keeps nothing has failed") {
    const TemporaryDirectory root;
    tests::write_file(root / "cache", "a file where the directory should be");
    REQUIRE_PASSED(
        tests::run("scenario: prewarm where nothing can be kept", fakes(root / "cache")));
}
