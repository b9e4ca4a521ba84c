// Prewarm, with the compiler that is here, and with the fake one for what would take long.
#include "jitney/prewarm.hpp"

#include <pthread.h>

#include <filesystem>
#include <system_error>
#include <thread>

#include "tests/api/bad_call.hpp"
#include "tests/runtime/child.hpp"

namespace jitney::tests {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kSpecs = {
    "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80",
    "rotary_emb<format=fp32,style=half_split,pairs=1>@sm_90a",
};

std::vector<std::string> files_in(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (entry.path().extension() == ".cubin") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

TEST_CASE("texts that no GPU looks for") {
    check_spec(kSpecs[0]);
    for (const char* text : {"rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_90",
                             "rotary_emb", "attn_work_map<threads=33>@sm_80"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(check_spec(text), Error);
    }
}

TEST_CASE("linear layers whose specializations can't be told") {
    using Bad = BadCall<Fp8LinearShape>;
    Fp8LinearShape good;
    good.out_features = 4096;
    good.in_features = 1024;
    good.last_rows = 16;
    const auto specs = [](const Fp8LinearShape& shape) {
        return fp8_linear_specs(shape, "sm_90a");
    };
    CHECK(!specs(good).empty());
    const std::vector<Bad> bad = {
        {"no columns", [](auto& s) { s.in_features = 0; }, {"4096", "0", "from 1 to 2147418112"}},
        {"too many", [](auto& s) { s.out_features = 2147418113; }, {"2147418113"}},
        {"no rows", [](auto& s) { s.first_rows = 0; }, {"rows are from 0 to 16"}},
        {"rows that go down", [](auto& s) { s.first_rows = 17; }, {"rows are from 17 to 16"}},
        {"rows without end", [](auto& s) { s.last_rows = 1048577; }, {"1048577", "1048576"}},
        {"codes", [](auto& s) { s.dtype = DType::fp8_e4m3; }, {"bf16, fp16 or fp32"}},
        {"a bias in fp16", [](auto& s) { s.bias = DType::fp16; }, {"bias", "bf16 or fp32"}},
        {"no history", [](auto& s) { s.recipe.history = 0; }, {"history"}},
    };
    for (const Bad& each : bad)
        check_refused(each, good, specs);
    CHECK_THROWS_WITH_AS(fp8_linear_specs(good, "sm_80"),
                         doctest::Contains("no kernel multiplies FP8 on sm_80"), Error);
    CHECK_THROWS_WITH_AS(fp8_linear_specs(good, "sm_90"), doctest::Contains("sm_90a"), Error);
    CHECK_THROWS_WITH_AS(fp8_linear_specs(good, "sm_90a", -1),
                         doctest::Contains("multiprocessors is -1"), Error);
}

TEST_CASE("scenario: prewarm two" * doctest::skip()) {
    std::vector<std::pair<std::size_t, std::size_t>> steps;
    PrewarmOptions options;
    options.jobs = 2;
    options.progress = [&](const PrewarmEntry&, std::size_t done, std::size_t total) {
        steps.emplace_back(done, total);
    };
    const std::vector<PrewarmEntry> entries = prewarm(kSpecs, options);
    REQUIRE(entries.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(entries[i].spec == kSpecs[i]);
        CHECK(entries[i].error == "");
        CHECK(entries[i].bytes > 0);
        MESSAGE("status ", static_cast<int>(entries[i].status));
    }
    CHECK(steps == std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 2}});
}

TEST_CASE("scenario: prewarm without threads" * doctest::skip()) {
    // Stacks that no address space holds: every thread that is asked for is refused.
    pthread_attr_t attributes;
    REQUIRE(::pthread_attr_init(&attributes) == 0);
    REQUIRE(::pthread_attr_setstacksize(&attributes, std::size_t{1} << 50) == 0);
    REQUIRE(::pthread_setattr_default_np(&attributes) == 0);
    REQUIRE_THROWS_AS(std::thread([] {}), std::system_error);
    PrewarmOptions options;
    options.jobs = 8;
    for (const PrewarmEntry& entry : prewarm(kSpecs, options)) {
        CHECK(entry.error == "");
        CHECK(entry.status == PrewarmStatus::compiled);
    }
}

TEST_CASE("prewarm does its work where no thread can be made") {
    const TemporaryDirectory directory;
    REQUIRE_PASSED(run("scenario: prewarm without threads", fakes(directory / "cache")));
}

TEST_CASE("compiled, then cached, and the keys are the same from another directory") {
    const TemporaryDirectory first;
    const TemporaryDirectory second;
    const std::string scenario = "scenario: prewarm two";
    const Ended cold = run(scenario, {{"JITNEY_CACHE_DIR", first / "cache"}});
    REQUIRE_PASSED(cold);
    CHECK(cold.count("status 0") == 2);
    const Ended warm = run(scenario, {{"JITNEY_CACHE_DIR", first / "cache"}});
    REQUIRE_PASSED(warm);
    CHECK(warm.count("status 1") == 2);
    const Ended elsewhere =
        Child(scenario, {{"JITNEY_CACHE_DIR", second / "cache"}}, second.path()).wait();
    REQUIRE_PASSED(elsewhere);
    CHECK(elsewhere.count("status 0") == 2);
    CHECK(files_in(first / "cache").size() == 2);
    CHECK(files_in(first / "cache") == files_in(second / "cache"));
}

TEST_CASE("a text that is no specialization stops all before anything is compiled") {
    const std::vector<std::string> specs = {kSpecs[0], "attn_prefill_mma<head_dim=65>@sm_90a"};
    try {
        prewarm(specs);
        FAIL("it was accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK(std::string(error.what()).find("head_dim=65") != std::string::npos);
        check_sentence(error.what());
    }
    CHECK(prewarm({}).empty());
    PrewarmOptions options;
    options.jobs = -3;
    CHECK_THROWS_WITH_AS(prewarm({}, options), doctest::Contains("jobs is -3"), Error);
    // Hopper's kernels are looked up as sm_90a.
    const std::vector<std::string> unused = {
        "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_90"};
    CHECK_THROWS_WITH_AS(prewarm(unused), doctest::Contains("give sm_90a"), Error);
}

TEST_CASE("scenario: prewarm fails" * doctest::skip()) {
    const std::vector<PrewarmEntry> entries = prewarm(kSpecs);
    REQUIRE(entries.size() == 2);
    for (const PrewarmEntry& entry : entries) {
        CHECK(entry.status == PrewarmStatus::failed);
        check_sentence(entry.error);
        MESSAGE(entry.error);
    }
}

TEST_CASE("failures are entries, each with its sentence") {
    const TemporaryDirectory cache;
    const std::string scenario = "scenario: prewarm fails";
    REQUIRE_PASSED(run(scenario, {{"JITNEY_CACHE_DIR", cache / "cache"},
                                  {"JITNEY_LIBNVRTC", cache / "libnvrtc.so.13"}}));
    write_file(cache / "fail", "");
    const Ended refused =
        run(scenario, fakes(cache / "cache", {{"FAKE_NVRTC_FAIL_WHILE", cache / "fail"}}));
    REQUIRE_PASSED(refused);
    CHECK(refused.count("rotary_emb<format=bf16") > 0);
}

TEST_CASE("what can't be kept is not compiled, and the sentence says why") {
    const TemporaryDirectory cache;
    const std::string scenario = "scenario: prewarm fails";
    const Ended capped =
        run(scenario, {{"JITNEY_CACHE_DIR", cache / "cache"}, {"JITNEY_CACHE_MAX_BYTES", "0"}});
    REQUIRE_PASSED(capped);
    CHECK(capped.count("JITNEY_CACHE_MAX_BYTES=0") == 2);
    const Ended layers =
        run(scenario, {{"JITNEY_CACHE_DIR", std::string(":").append(cache / "layer")}});
    REQUIRE_PASSED(layers);
    CHECK(layers.count("let JITNEY_CACHE_DIR begin") == 2);
}

TEST_CASE("scenario: progress throws" * doctest::skip()) {
    PrewarmOptions options;
    options.jobs = 2;
    options.progress = [](const PrewarmEntry&, std::size_t, std::size_t) {
        throw std::runtime_error("enough");
    };
    CHECK_THROWS_WITH(prewarm(kSpecs, options), "enough");
}

TEST_CASE("an exception of the caller's progress reaches the caller") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: progress throws", fakes(cache.path())));
}

}  // namespace jitney::tests
