// fp8_gemm: bad calls, host tensors, and from the arguments to the launch with a driver that
// computes in software.
#include "jitney/fp8_gemm.hpp"

#include <cmath>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/fp8_gemm_problem.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<Fp8GemmArgs>;

// 6 x 8 of a k of 16, and all that can be asked for.
struct GoodCall {
    explicit GoodCall(const Device& where) : device(where) {}

    Fp8GemmArgs args() {
        Fp8GemmArgs args;
        args.a = a.view(device);
        args.b = b.view(device);
        args.out = out.view(device);
        args.dequant_scale = scale.view(device);
        args.bias = bias.view(device);
        args.out_multiplier = multiplier.view(device);
        args.amax = amax.view(device);
        args.trans_b = true;
        return args;
    }

    Device device;
    HostTensor a{DType::fp8_e4m3, {6, 16}};
    HostTensor b{DType::fp8_e5m2, {8, 16}};
    HostTensor out{DType::fp8_e4m3, {6, 8}};
    HostTensor scale{DType::fp32, {1}};
    HostTensor bias{DType::bf16, {8}};
    HostTensor multiplier{DType::fp32, {1}};
    HostTensor amax{DType::fp32, {1}};
};

std::vector<Bad> bad_calls() {
    return {
        {"bf16 a", [](auto& a) { a.a.dtype = DType::bf16; }, {"a has the dtype bf16", "fp8_e4m3"}},
        {"fp32 b", [](auto& a) { a.b.dtype = DType::fp32; }, {"b has the dtype fp32", "fp8_e5m2"}},
        {"int32 out",
         [](auto& a) {
             a.out.dtype = DType::int32;
             a.out_multiplier.reset();
             a.amax.reset();
         },
         {"out", "int32"}},
        {"codes as bytes",
         [](auto& a) { a.a.dtype = DType::boolean; },
         {"a has the dtype bool", "unsigned 8 bits", "fp8_e4m3 or fp8_e5m2", "10", "12"}},
        {"out as bytes",
         [](auto& a) {
             a.out.dtype = DType::boolean;
             a.out_multiplier.reset();
             a.amax.reset();
         },
         {"out has the dtype bool", "fp32, fp8_e4m3 or fp8_e5m2"}},
        {"a size below 0",
         [](auto& a) { a.a.shape[0] = -1; },
         {"a has the shape [-1, 16]", "-1 is negative"}},
        {"m and n beyond all memory",
         [](auto& a) {
             a.a.shape[0] = a.out.shape[0] = 0x7fff0000;
             a.b.shape[0] = a.out.shape[1] = a.bias->shape[0] = 0x7fff0000;
             a.out.strides[0] = 0x7fff0000;
         },
         {"out has the shape [2147418112, 2147418112]", "more elements than memory", "split"}},
        {"m and n beyond what is counted",
         [](auto& a) {
             a.a.shape[0] = a.out.shape[0] = 0x7fffffff;
             a.b.shape[0] = a.out.shape[1] = a.bias->shape[0] = 0x7fffffff;
             a.out.strides[0] = 0x7fffffff;
         },
         {"m, n and k are 2147483647, 2147483647 and 16", "at most 2147418112"}},
        {"fp16 bias",
         [](auto& a) { a.bias->dtype = DType::fp16; },
         {"bias", "fp16", "bf16 or fp32"}},
        {"bf16 scale",
         [](auto& a) { a.dequant_scale->dtype = DType::bf16; },
         {"dequant_scale", "fp32"}},
        {"two scales", [](auto& a) { reshape(*a.dequant_scale, {2}); }, {"dequant_scale", "[2]"}},
        {"no multiplier",
         [](auto& a) { a.out_multiplier.reset(); },
         {"out", "fp8_e4m3", "no out_multiplier"}},
        {"a multiplier for bf16",
         [](auto& a) {
             a.out.dtype = DType::bf16;
             a.amax.reset();
         },
         {"out_multiplier", "bf16"}},
        {"amax of bf16",
         [](auto& a) {
             a.out.dtype = DType::bf16;
             a.out_multiplier.reset();
         },
         {"amax", "bf16"}},
        {"int32 amax", [](auto& a) { a.amax->dtype = DType::int32; }, {"amax", "fp32"}},
        {"3-D a",
         [](auto& a) {
             reshape(a.a, {2, 3, 16});
         },
         {"a has 3 dimensions", "[m, k]"}},
        {"another k",
         [](auto& a) {
             reshape(a.b, {8, 32});
         },
         {"a has k 16 and b 32"}},
        {"b the other way", [](auto& a) { a.trans_b = false; }, {"k", "trans_b"}},
        {"a the other way", [](auto& a) { a.trans_a = true; }, {"k", "trans_a"}},
        {"shape of out",
         [](auto& a) {
             reshape(a.out, {8, 6});
         },
         {"out", "[8, 6]", "[6, 8]"}},
        {"length of bias", [](auto& a) { reshape(*a.bias, {6}); }, {"bias", "[6]", "[8]"}},
        {"negative size", [](auto& a) { a.a.shape[0] = -6; }, {"a", "-6"}},
        {"inner stride of a", [](auto& a) { a.a.strides[1] = 2; }, {"a", "innermost"}},
        {"inner stride of b", [](auto& a) { a.b.strides[1] = 2; }, {"b", "innermost"}},
        {"inner stride of bias", [](auto& a) { a.bias->strides[0] = 2; }, {"bias", "innermost"}},
        {"rows of out overlap", [](auto& a) { a.out.strides[0] = 7; }, {"out", "overlap"}},
        {"a stride out of memory",
         [](auto& a) { a.a.strides[0] = std::int64_t{1} << 60; },
         {"a", "memory"}},
        {"more rows than can be counted",
         [](auto& a) {
             a.a.shape[0] = a.out.shape[0] = 0x7fffffff;
             a.a.strides[0] = a.out.strides[0] = 0;
         },
         {"m, n and k", "2147483647"}},
        {"null a", [](auto& a) { a.a.data = nullptr; }, {"a", "no data"}},
        {"null out", [](auto& a) { a.out.data = nullptr; }, {"out", "no data"}},
        {"null scale", [](auto& a) { a.dequant_scale->data = nullptr; }, {"dequant_scale"}},
        {"null amax", [](auto& a) { a.amax->data = nullptr; }, {"amax", "no data"}},
        {"odd bias",
         [](auto& a) { a.bias->data = static_cast<std::byte*>(a.bias->data) + 1; },
         {"bias begins at", "2 bytes"}},
        {"b elsewhere",
         [](auto& a) {
             a.b.device = {DeviceType::cuda, 7};
         },
         {"b", "GPU 7"}},
        {"scale elsewhere",
         [](auto& a) {
             a.dequant_scale->device = {DeviceType::cuda, 7};
         },
         {"dequant_scale", "GPU 7"}},
        {"out in a", [](auto& a) { a.out.data = a.a.data; }, {"out begins where a does"}},
        {"out in b", [](auto& a) { a.out.data = a.b.data; }, {"out begins where b does"}},
        {"amax in the scale",
         [](auto& a) { a.amax->data = a.dequant_scale->data; },
         {"amax", "dequant_scale"}},
        {"amax in the multiplier",
         [](auto& a) { a.amax->data = a.out_multiplier->data; },
         {"amax", "out_multiplier"}},
        {"out from the last of b on",
         [](auto& a) { a.out.data = static_cast<std::byte*>(a.b.data) + 127; },
         {"out overlaps b"}},
        {"out in bias", [](auto& a) { a.out.data = a.bias->data; }, {"out begins where bias does"}},
        {"the scale in out",
         [](auto& a) { a.dequant_scale->data = static_cast<std::byte*>(a.out.data) + 44; },
         {"out overlaps dequant_scale"}},
        {"the multiplier in out",
         [](auto& a) { a.out_multiplier->data = a.out.data; },
         {"out begins where out_multiplier does"}},
        {"amax in out", [](auto& a) { a.amax->data = a.out.data; }, {"amax begins where out does"}},
        {"amax in a", [](auto& a) { a.amax->data = a.a.data; }, {"amax begins where a does"}},
        {"null scale without dimensions",
         [](auto& a) {
             reshape(*a.dequant_scale, {});
             a.dequant_scale->data = nullptr;
         },
         {"dequant_scale has the shape []", "no data"}},
        {"null workspace", [](auto& a) { a.workspace.bytes = 512; }, {"workspace is null", "512"}},
        {"workspace at an odd place",
         [](auto& a) {
             a.workspace = {reinterpret_cast<void*>(std::uintptr_t{0x10010}), 1 << 20};
         },
         {"workspace begins at 0x10010", "256"}},
    };
}

void check_all_refused(const Device& device) {
    GoodCall good(device);
    for (const Bad& bad : bad_calls()) {
        check_refused(bad, good.args(), [](const auto& args) { fp8_gemm(args); });
        check_refused(bad, good.args(), [](const auto& args) { ops::fp8_gemm(args); });
    }
}

template <class View>
Fp8GemmArgs args_of(Fp8GemmProblem& problem, const View& view) {
    return problem.args(views_of(problem, view));
}

// Of the fake GPU, whose memory is host memory.
Fp8GemmArgs gpu_args(Fp8GemmProblem& problem) {
    return args_of(problem, [](HostTensor& tensor) { return on_gpu(tensor); });
}

void check_same(const Fp8GemmProblem& actual, Fp8GemmProblem expected) {
    expected.run_reference();
    const std::string difference = expected.difference(actual.out);
    CHECK_MESSAGE(difference.empty(), actual.test.text(), ": ", difference);
    if (actual.amax) CHECK(actual.amax->get(0) == expected.amax->get(0));
}

}  // namespace

TEST_CASE("bad calls of fp8_gemm are refused with a sentence") {
    check_all_refused({DeviceType::cpu, 0});
}

TEST_CASE("scenario: bad fp8_gemm" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all_refused({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("bad calls of fp8_gemm reach no GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad fp8_gemm", fake_gpu(cache)));
}

TEST_CASE("fp8_gemm runs on the reference backend for host tensors") {
    Random random(5);
    Fp8GemmCase test;
    test.bias = DType::bf16;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmProblem untouched = problem;
    const Fp8GemmArgs args = args_of(problem, [](HostTensor& tensor) { return tensor.view(); });
    fp8_gemm(args);
    CHECK(last_run() == "reference");
    check_same(problem, untouched);
    CHECK_THROWS_WITH_AS(ops::fp8_gemm(args), doctest::Contains("in host memory"), Error);
}

TEST_CASE("a sum of nothing is 0, whatever the scale: the bias remains") {
    Random random(5);
    for (const double scale : {HUGE_VAL, -HUGE_VAL, std::nan(""), 0.5}) {
        for (const bool has_bias : {true, false}) {
            Fp8GemmCase test;
            test.k = 0;
            test.scale = scale;
            test.out = DType::fp32;
            if (has_bias) test.bias = DType::fp32;
            Fp8GemmProblem problem(test, random);
            fp8_gemm(args_of(problem, [](HostTensor& tensor) { return tensor.view(); }));
            CHECK(last_run() == "reference");
            for (std::int64_t col = 0; col < test.n; ++col)
                CHECK(problem.out.at({1, col}) == (has_bias ? problem.bias->get(col) : 0.0));
        }
    }
}

TEST_CASE("a product without rows or columns computes nothing, and its amax is 0") {
    Random random(5);
    for (const auto& [m, n] : {std::pair{0, 8}, std::pair{8, 0}}) {
        Fp8GemmCase test;
        test.m = m;
        test.n = n;
        Fp8GemmProblem problem(test, random);
        fp8_gemm(args_of(problem, [](HostTensor& tensor) { return tensor.view(); }));
        CHECK(last_run().empty());

        GoodCall call({DeviceType::cpu, 0});
        call.amax.set(0, 7.0);
        Fp8GemmArgs args = call.args();
        args.a.shape[0] = args.out.shape[0] = m;
        args.b.shape[0] = args.out.shape[1] = n;
        args.bias->shape[0] = n;
        // Strides of what is empty mean nothing.
        for (Tensor* tensor : {m == 0 ? &args.a : &args.b, &args.out})
            tensor->strides = {0, 0};
        fp8_gemm(args);
        CHECK(last_run().empty());
        CHECK(call.amax.get(0) == 0.0);
    }
}

TEST_CASE("scenario: random fp8_gemm" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 100; ++i) {
        Fp8GemmCase test;
        test.a = random.chance(0.5) ? DType::fp8_e4m3 : DType::fp8_e5m2;
        test.b = random.chance(0.5) ? DType::fp8_e4m3 : DType::fp8_e5m2;
        test.out = static_cast<DType>(random.integer(0, 4));
        test.m = random.integer(1, 90);
        test.n = random.integer(1, 90);
        test.k = random.integer(0, 300);
        test.trans_a = random.chance(0.5);
        test.trans_b = random.chance(0.5);
        test.amax = size_of(test.out) == 1 && random.chance(0.5);
        if (random.chance(0.5)) test.bias = random.chance(0.5) ? DType::bf16 : DType::fp32;
        if (random.chance(0.3)) test.a_rows = {random.integer(0, 9), random.integer(0, 9)};
        if (random.chance(0.3)) test.b_rows = {random.integer(0, 9), random.integer(0, 9)};
        if (random.chance(0.3)) test.out_rows = {random.integer(0, 9), random.integer(0, 9)};
        Fp8GemmProblem problem(test, random);
        const Fp8GemmProblem untouched = problem;
        fp8_gemm(gpu_args(problem));
        CHECK(last_run().starts_with("fp8_gemm_"));
        check_same(problem, untouched);
    }
}

TEST_CASE("what reaches a kernel of fp8_gemm means what the arguments mean") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random fp8_gemm", fake_gpu(cache)));
}

TEST_CASE("scenario: launches of fp8_gemm" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    Fp8GemmCase test;
    test.m = 64;
    test.n = 128;
    test.k = 8192;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmArgs args = gpu_args(problem);
    const Scope scope("fp8_gemm_mma");  // whose splits have a workspace
    fp8_gemm(args);
    CHECK(fake.launches == 1);
    const Explanation expected = explain(args);
    CHECK(last_run() == expected.chosen);
    CHECK(expected.splits > 1);
    CHECK(expected.workspace_bytes > 0);
    CHECK(fake.launch.grid == expected.grid);
    CHECK(fake.launch.block == expected.block);
    CHECK(fake.launch.shared_bytes == static_cast<unsigned>(expected.shared_bytes));

    // The hot path allocates nothing; computing in software does.
    fake.kernel = nullptr;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 10; ++i)
        fp8_gemm(args);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == 11);

    // In memory of the caller's, which is as large as it says.
    Fp8GemmArgs own = args;
    own.workspace.bytes = workspace_bytes(own);
    CHECK(own.workspace.bytes == expected.workspace_bytes);
    alignas(256) static std::byte memory[2 << 20];
    REQUIRE(own.workspace.bytes <= sizeof memory);
    own.workspace.data = memory;
    init_workspace(own.workspace);
    fp8_gemm(own);
    CHECK(fake.launches == 12);
    own.workspace.bytes -= 1;
    CHECK_THROWS_WITH_AS(fp8_gemm(own), doctest::Contains("workspace"), Error);
    own.workspace.data = nullptr;
    CHECK_THROWS_WITH_AS(fp8_gemm(own), doctest::Contains("workspace"), Error);
    CHECK(fake.launches == 12);

    // The amax of nothing is 0, which the driver writes.
    GoodCall nothing({DeviceType::cuda, 0});
    for (const auto call : {&fp8_gemm, &ops::fp8_gemm}) {
        nothing.amax.set(0, 7.0);
        Fp8GemmArgs empty = nothing.args();
        empty.a.shape[0] = empty.out.shape[0] = 0;
        call(empty, nullptr);
        CHECK(nothing.amax.get(0) == 0.0);
        CHECK(last_run().empty());
    }
    CHECK(fake.launches == 12);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("fp8_gemm launches what explain says, and allocates nothing then") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: launches of fp8_gemm", fake_gpu(cache)));
}

TEST_CASE("scenario: fp8_gemm on Ampere" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    Fp8GemmProblem problem({}, random);
    CHECK_THROWS_WITH_AS(fp8_gemm(gpu_args(problem)),
                         doctest::Contains("FP8 tensor cores need sm_89 or newer, this is sm_80"),
                         Error);
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("a GPU without FP8 tensor cores is an error that says so") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(
        run("scenario: fp8_gemm on Ampere", fake_gpu(cache, {{"FAKE_CUDA_DEVICES", "80"}})));
}

TEST_CASE("explain tells the choice of fp8_gemm for any arch") {
    GoodCall good({DeviceType::cuda, 0});
    Fp8GemmArgs args = good.args();
    const Explanation hopper = explain(args, "sm_90a");
    CHECK(hopper.chosen.starts_with("fp8_gemm_wgmma<a=e4m3,b=e5m2,out=e4m3,"));
    REQUIRE(hopper.candidates.size() == 2);
    CHECK(hopper.candidates[0].kernel == "fp8_gemm_wgmma");
    CHECK(hopper.candidates[0].accepted);
    CHECK(hopper.candidates[1].kernel == "fp8_gemm_mma");
    CHECK(hopper.candidates[1].accepted);
    const Explanation ampere = explain(args, "sm_80");
    CHECK(ampere.chosen.empty());
    REQUIRE(ampere.candidates.size() == 2);
    CHECK(ampere.candidates[0].reason == "needs sm_90a, this is sm_80");
    CHECK(ampere.candidates[1].reason == "FP8 tensor cores need sm_89 or newer, this is sm_80");
}

}  // namespace jitney::tests
