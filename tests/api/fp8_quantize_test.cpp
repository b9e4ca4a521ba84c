// fp8_quantize: bad calls, host tensors, and from the arguments to the launches with a driver that
// computes in software.
#include "jitney/fp8_quantize.hpp"

#include <cmath>
#include <cstring>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/fp8_quantize_problem.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<Fp8QuantizeArgs>;

// 6 rows of 8, all that can be asked for.
struct GoodCall {
    explicit GoodCall(const Device& where) : device(where) {}

    Fp8QuantizeArgs args() {
        Fp8QuantizeArgs args;
        args.x = x.view(device);
        args.out = out.view(device);
        args.out_transposed = out_transposed.view(device);
        args.multiplier = multiplier.view(device);
        args.scale = scale.view(device);
        args.amax = amax.view(device);
        return args;
    }

    Device device;
    HostTensor x{DType::bf16, {2, 3, 8}};
    HostTensor out{DType::fp8_e4m3, {2, 3, 8}};
    HostTensor out_transposed{DType::fp8_e4m3, {8, 6}};
    HostTensor multiplier{DType::fp32, {1}};
    HostTensor scale{DType::fp32, {1}};
    HostTensor amax{DType::fp32, {1}};
};

// The same with a scale a row.
void of_rows(Fp8QuantizeArgs& args) {
    args.granularity = Fp8Granularity::row;
    args.dynamic = true;
    args.out_transposed.reset();
    args.multiplier.reset();
    args.amax.reset();
    reshape(*args.scale, {6});
}

std::vector<Bad> bad_calls() {
    return {
        {"fp8 x", [](auto& a) { a.x.dtype = DType::fp8_e4m3; }, {"x has the dtype fp8_e4m3"}},
        {"bf16 out", [](auto& a) { a.out->dtype = DType::bf16; }, {"out", "bf16", "fp8_e5m2"}},
        {"codes of two formats",
         [](auto& a) { a.out_transposed->dtype = DType::fp8_e5m2; },
         {"fp8_e4m3", "out_transposed", "fp8_e5m2"}},
        {"shape of out",
         [](auto& a) {
             reshape(*a.out, {6, 8});
         },
         {"[2, 3, 8]", "out", "[6, 8]"}},
        {"shape of out_transposed",
         [](auto& a) {
             reshape(*a.out_transposed, {6, 8});
         },
         {"out_transposed", "[6, 8]", "[8, 6]"}},
        {"no dimensions", [](auto& a) { a.x.ndim = 0; }, {"x has 0 dimensions"}},
        {"negative size", [](auto& a) { a.x.shape[1] = -3; }, {"x", "-3"}},
        {"more elements than memory",
         [](auto& a) { a.x.shape[0] = a.x.shape[1] = std::int64_t{1} << 31; },
         {"x", "2147483648"}},
        {"inner stride", [](auto& a) { a.x.strides[2] = 2; }, {"x", "innermost"}},
        {"rows at two distances", [](auto& a) { a.x.strides[0] = 32; }, {"x", "row to row"}},
        {"codes whose rows overlap",
         [](auto& a) { a.out_transposed->strides[0] = 5; },
         {"out_transposed", "overlap"}},
        {"null x", [](auto& a) { a.x.data = nullptr; }, {"x", "no data"}},
        {"null out", [](auto& a) { a.out->data = nullptr; }, {"out", "no data"}},
        {"null amax", [](auto& a) { a.amax->data = nullptr; }, {"amax", "no data"}},
        {"odd x",
         [](auto& a) { a.x.data = static_cast<std::byte*>(a.x.data) + 1; },
         {"x begins at", "2 bytes"}},
        {"two multipliers", [](auto& a) { reshape(*a.multiplier, {2}); }, {"multiplier", "[2]"}},
        {"bf16 multiplier",
         [](auto& a) { a.multiplier->dtype = DType::bf16; },
         {"multiplier", "fp32"}},
        {"int32 amax", [](auto& a) { a.amax->dtype = DType::int32; }, {"amax", "fp32"}},
        {"out elsewhere",
         [](auto& a) {
             a.out->device = {DeviceType::cuda, 7};
         },
         {"out", "GPU 7"}},
        {"amax elsewhere",
         [](auto& a) {
             a.amax->device = {DeviceType::cuda, 7};
         },
         {"amax", "GPU 7"}},
        {"codes in x", [](auto& a) { a.out->data = a.x.data; }, {"out begins where x does"}},
        {"one place for all codes",
         [](auto& a) { a.out_transposed->data = a.out->data; },
         {"out_transposed begins where out does"}},
        {"amax in scale", [](auto& a) { a.amax->data = a.scale->data; }, {"amax", "scale"}},
        {"scale in multiplier",
         [](auto& a) { a.scale->data = a.multiplier->data; },
         {"scale", "multiplier"}},
        {"codes from the middle of x on",
         [](auto& a) { a.out->data = static_cast<std::byte*>(a.x.data) + 95; },
         {"out overlaps x"}},
        {"the multiplier among the codes",
         [](auto& a) { a.multiplier->data = static_cast<std::byte*>(a.out->data) + 44; },
         {"out overlaps multiplier"}},
        {"amax among the transposed codes",
         [](auto& a) { a.amax->data = static_cast<std::byte*>(a.out_transposed->data) + 4; },
         {"amax overlaps out_transposed"}},
        {"scale in x", [](auto& a) { a.scale->data = a.x.data; }, {"scale begins where x does"}},
        {"a dynamic multiplier in x",
         [](auto& a) {
             a.dynamic = true;
             a.multiplier->data = static_cast<std::byte*>(a.x.data) + 8;
         },
         {"multiplier overlaps x"}},
        {"null multiplier without dimensions",
         [](auto& a) {
             reshape(*a.multiplier, {});
             a.multiplier->data = nullptr;
         },
         {"multiplier", "no data"}},
        {"a multiplier of too many dimensions",
         [](auto& a) { a.multiplier->ndim = 6; },
         {"multiplier has 6 dimensions"}},
        {"null workspace", [](auto& a) { a.workspace.bytes = 512; }, {"workspace is null", "512"}},
        {"workspace at an odd place",
         [](auto& a) {
             a.workspace = {reinterpret_cast<void*>(std::uintptr_t{0x10010}), 1 << 20};
         },
         {"workspace begins at 0x10010", "256"}},
        {"nothing wanted",
         [](auto& a) {
             a.out.reset();
             a.out_transposed.reset();
             a.amax.reset();
         },
         {"neither out nor out_transposed nor amax"}},
        {"dynamic without codes",
         [](auto& a) {
             a.out.reset();
             a.out_transposed.reset();
             a.dynamic = true;
         },
         {"dynamic", "out_transposed"}},
        {"granularity 4",
         [](auto& a) { a.granularity = static_cast<Fp8Granularity>(4); },
         {"granularity is 4", "block (3)"}},
        {"powers of two without dynamic",
         [](auto& a) { a.power_of_two = true; },
         {"power_of_two", "dynamic"}},
        {"rows that are not dynamic",
         [](auto& a) {
             of_rows(a);
             a.dynamic = false;
         },
         {"granularity", "dynamic"}},
        {"rows without scale",
         [](auto& a) {
             of_rows(a);
             a.scale.reset();
         },
         {"granularity", "scale was not given"}},
        {"rows without codes",
         [](auto& a) {
             of_rows(a);
             a.out.reset();
         },
         {"granularity", "out was not given"}},
        {"rows and transposed codes",
         [](auto& a) {
             const auto transposed = a.out_transposed;
             of_rows(a);
             a.out_transposed = transposed;
         },
         {"out_transposed", "granularity"}},
        {"rows and a multiplier",
         [](auto& a) {
             const auto multiplier = a.multiplier;
             of_rows(a);
             a.multiplier = multiplier;
         },
         {"multiplier", "granularity"}},
        {"rows and amax",
         [](auto& a) {
             const auto amax = a.amax;
             of_rows(a);
             a.amax = amax;
         },
         {"amax", "granularity"}},
        {"one scale for six rows",
         [](auto& a) {
             of_rows(a);
             reshape(*a.scale, {1});
         },
         {"scale has the shape [1]", "[6]"}},
        {"scales of groups for rows",
         [](auto& a) {
             of_rows(a);
             reshape(*a.scale, {6, 2});
         },
         {"scale has the shape [6, 2]", "[6, 1]"}},
        {"rows' scales for groups of a row too few",
         [](auto& a) {
             of_rows(a);
             a.granularity = Fp8Granularity::group;
             reshape(*a.scale, {5, 1});
         },
         {"scale has the shape [5, 1]", "[6, 1]"}},
        {"groups' scales for blocks",
         [](auto& a) {
             of_rows(a);
             a.granularity = Fp8Granularity::block;
             reshape(*a.scale, {6, 1});
         },
         {"scale has the shape [6, 1]", "[1, 1]"}},
        {"scales in one place",
         [](auto& a) {
             of_rows(a);
             a.scale->strides[0] = 0;
         },
         {"scale", "overlap"}},
        {"scales of bf16",
         [](auto& a) {
             of_rows(a);
             a.scale->dtype = DType::bf16;
         },
         {"scale has the dtype bf16"}},
        {"scales in x",
         [](auto& a) {
             of_rows(a);
             a.scale->data = a.x.data;
         },
         {"scale", "x"}},
        {"scales that lie nowhere",
         [](auto& a) {
             of_rows(a);
             a.scale->data = nullptr;
         },
         {"scale", "no data"}},
        {"a multiplier for amax alone",
         [](auto& a) {
             a.out.reset();
             a.out_transposed.reset();
         },
         {"multiplier"}},
    };
}

void check_all_refused(const Device& device) {
    GoodCall good(device);
    for (const Bad& bad : bad_calls()) {
        check_refused(bad, good.args(), [](const auto& args) { fp8_quantize(args); });
        check_refused(bad, good.args(), [](const auto& args) { ops::fp8_quantize(args); });
    }
}

// Of the fake GPU, whose memory is host memory.
Fp8QuantizeArgs args_of(Fp8QuantizeProblem& problem) {
    return problem.args([](HostTensor& tensor) { return on_gpu(tensor); });
}

void check_same(Fp8QuantizeProblem& actual, Fp8QuantizeProblem expected) {
    expected.run_reference();
    const std::string difference = actual.difference(expected);
    CHECK_MESSAGE(difference.empty(), actual.test.text(), ": ", difference);
}

}  // namespace

TEST_CASE("bad calls of fp8_quantize are refused with a sentence") {
    check_all_refused({DeviceType::cpu, 0});
}

TEST_CASE("scenario: bad fp8_quantize" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all_refused({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("bad calls of fp8_quantize reach no GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad fp8_quantize", fake_gpu(cache)));
}

TEST_CASE("fp8_quantize runs on the reference backend for host tensors") {
    Random random(5);
    Fp8QuantizeCase test;
    test.shape = {5, 4, 3, 160};
    test.transposed = test.amax = test.scale = true;
    test.multiplier = 0.5;
    Fp8QuantizeProblem problem(test, random);
    const Fp8QuantizeProblem untouched = problem;
    const Fp8QuantizeArgs args = problem.args([](HostTensor& tensor) { return tensor.view(); });
    fp8_quantize(args);
    CHECK(last_run() == "reference");
    check_same(problem, untouched);
    CHECK_THROWS_WITH_AS(ops::fp8_quantize(args), doctest::Contains("in host memory"), Error);
}

TEST_CASE("a zero-length matrix on the host runs nothing and defines its numbers") {
    Random random(5);
    Fp8QuantizeCase test;
    test.shape = {0, 8};
    test.amax = test.dynamic = test.scale = true;
    Fp8QuantizeProblem problem(test, random);
    fp8_quantize(problem.args([](HostTensor& tensor) { return tensor.view(); }));
    CHECK(last_run().empty());
    CHECK(problem.amax.get(0) == 0.0);
    CHECK(problem.multiplier.get(0) == 1.0);
    CHECK(problem.scale.get(0) == 1.0);
    test.dynamic = false;
    test.multiplier = 4.0;
    Fp8QuantizeProblem given(test, random);
    fp8_quantize(given.args([](HostTensor& tensor) { return tensor.view(); }));
    CHECK(given.scale.get(0) == 0.25);
    CHECK(given.amax.get(0) == 0.0);
}

TEST_CASE("scenario: random fp8_quantize" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 200; ++i) {
        Fp8QuantizeCase test;
        test.dtype = static_cast<DType>(random.integer(0, 2));
        test.out = random.chance(0.5) ? DType::fp8_e4m3 : DType::fp8_e5m2;
        test.shape = {random.integer(1, 70), random.integer(1, 90)};
        if (random.chance(0.2)) test.shape = {random.integer(1, 5000)};
        test.rows = random.chance(0.7);
        test.transposed = !test.rows || random.chance(0.5);
        test.amax = random.chance(0.5);
        test.scale = random.chance(0.5);
        test.dynamic = random.chance(0.4);
        test.multiplier.reset();
        if (random.chance(0.7)) test.multiplier = random.uniform(0.01, 5.0);
        if (random.chance(0.4)) test.x_padding = random.integer(1, 9);
        if (random.chance(0.4)) test.out_padding = random.integer(1, 9);
        if (random.chance(0.4)) test.transposed_padding = random.integer(1, 9);
        test.power_of_two = test.dynamic && random.chance(0.3);
        const int granularity = random.chance(0.5) ? 0 : static_cast<int>(random.integer(1, 3));
        if (granularity != 0) {
            test.ask_for(static_cast<Fp8Granularity>(granularity));
            test.turned_scales = random.chance(0.5);
            test.shape = {random.integer(1, 300), random.integer(1, 400)};
        }
        Fp8QuantizeProblem problem(test, random);
        const Fp8QuantizeProblem untouched = problem;
        const Fp8QuantizeArgs args = args_of(problem);
        fp8_quantize(args);
        const char* const kernels[] = {"fp8_quantize<", "fp8_quantize_rows<",
                                       "fp8_quantize_groups<", "fp8_quantize_groups<"};
        CHECK(last_run().starts_with(kernels[granularity]));
        CHECK(last_run() == explain(args).chosen);
        if (granularity != 0) {
            CHECK(workspace_bytes(args) == 0);
            CHECK(explain(args).before.empty());
        }
        check_same(problem, untouched);
    }
}

TEST_CASE("what reaches the kernels of fp8_quantize means what the arguments mean") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random fp8_quantize", fake_gpu(cache)));
}

TEST_CASE("scenario: launches of fp8_quantize" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    Fp8QuantizeCase test;
    test.shape = {300, 700};
    test.amax = true;
    Fp8QuantizeProblem given(test, random);
    fp8_quantize(args_of(given));
    CHECK(fake.launches == 1);  // codes and amax in one pass
    Explanation expected = explain(args_of(given));
    CHECK(last_run() == expected.chosen);
    CHECK(expected.before.empty());
    CHECK(fake.launch.grid == expected.grid);
    CHECK(fake.launch.shared_bytes == static_cast<unsigned>(expected.shared_bytes));

    test.dynamic = true;
    test.multiplier.reset();
    Fp8QuantizeProblem dynamic(test, random);
    fp8_quantize(args_of(dynamic));
    CHECK(fake.launches == 3);
    expected = explain(args_of(dynamic));
    CHECK(last_run() == expected.chosen);
    CHECK(expected.before.size() == 1);

    // In memory of the caller's, which is as large as it says.
    alignas(256) static std::byte own[(64 << 10) + 256];
    for (Fp8QuantizeProblem* problem : {&given, &dynamic}) {
        const Fp8QuantizeProblem untouched = *problem;
        Fp8QuantizeArgs args = args_of(*problem);
        args.workspace = {own, workspace_bytes(args)};
        CHECK(args.workspace.bytes >= (64 << 10));
        REQUIRE(args.workspace.bytes <= sizeof own);
        init_workspace(args.workspace);
        fp8_quantize(args);
        check_same(*problem, untouched);
        args.workspace.bytes -= 1;
        CHECK_THROWS_WITH_AS(fp8_quantize(args), doctest::Contains("workspace"), Error);
    }
    CHECK(fake.launches == 6);

    // Empty: the numbers are set by the driver, and nothing is launched.
    test.shape = {0, 16};
    test.scale = true;
    test.multiplier = 1.0;
    Fp8QuantizeProblem empty(test, random);
    fp8_quantize(args_of(empty));
    CHECK(last_run().empty());
    CHECK(fake.launches == 6);
    CHECK(empty.amax.get(0) == 0.0);
    CHECK(empty.multiplier.get(0) == 1.0);
    CHECK(empty.scale.get(0) == 1.0);
    CHECK(explain(args_of(empty)).chosen.empty());

    // But for the inverse of a multiplier that is on the device: a block writes it.
    for (const auto& shape :
         {std::vector<std::int64_t>{0, 16}, std::vector<std::int64_t>{7, 0}, {0}, {0, 3, 0}}) {
        for (const int codes : {1, 2, 3}) {
            for (const bool amax : {false, true}) {
                Fp8QuantizeCase inverts;
                inverts.shape = shape;
                inverts.rows = (codes & 1) != 0;
                inverts.transposed = (codes & 2) != 0;
                inverts.amax = amax;
                inverts.scale = true;
                inverts.multiplier = 4.0;
                Fp8QuantizeProblem problem(inverts, random);
                problem.amax.set(0, 7.0);
                problem.scale.set(0, 7.0);
                const int launches = fake.launches;
                fp8_quantize(args_of(problem));
                CHECK(fake.launches == launches + 1);
                CHECK(last_run() == explain(args_of(problem)).chosen);
                CHECK(problem.scale.get(0) == 0.25);
                CHECK(problem.amax.get(0) == (amax ? 0.0 : 7.0));
                Fp8QuantizeCase without = inverts;
                without.multiplier.reset();
                Fp8QuantizeProblem one(without, random);
                fp8_quantize(args_of(one));
                CHECK(fake.launches == launches + 1);
                CHECK(one.scale.get(0) == 1.0);
            }
        }
    }
    CHECK(fake.synchronizations == 0);

    const Fp8QuantizeArgs given_args = args_of(given);
    const Fp8QuantizeArgs dynamic_args = args_of(dynamic);
    fake.kernel = nullptr;
    fp8_quantize(given_args);  // whose forms are prepared
    fp8_quantize(dynamic_args);
    const int allocations = fake.allocations;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) {
        fp8_quantize(given_args);
        fp8_quantize(dynamic_args);
    }
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.allocations == allocations);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("fp8_quantize launches what explain tells, and nothing for nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: launches of fp8_quantize", fake_gpu(cache)));
}

TEST_CASE("scenario: captured fp8_quantize" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    Fp8QuantizeCase test;
    test.dynamic = true;
    Fp8QuantizeProblem problem(test, random);
    fake.capture_status = 1;
    try {
        fp8_quantize(args_of(problem));
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::capture);
        check_sentence(error.what());
    }
    CHECK(fake.launches == 0);  // not even the first of the two
}

TEST_CASE("a dynamic fp8_quantize that is not loaded launches neither kernel in a capture") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: captured fp8_quantize", fake_gpu(cache)));
}

}  // namespace jitney::tests
