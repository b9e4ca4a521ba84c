// The kernel of Hopper alone: what its launches are given, call for call.
#include <array>

#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "operations/attention/reference.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kName = "attn_prefill_wgmma<";

AttentionShape prefill_shape(std::int64_t batch, std::int64_t q_len, std::int64_t kv_len,
                             std::int64_t group) {
    AttentionShape shape = decode_shape(kv_len);
    shape.batch = batch;
    shape.q_len = q_len;
    shape.kv_heads = 2;
    shape.q_heads = 2 * group;
    shape.causal = true;
    return shape;
}

void run_and_check(AttentionProblem& problem) {
    const AttentionProblem untouched = problem;
    attention(args_of(problem));
    CHECK(last_run().starts_with(kName));
    check_result(problem, untouched);
}

// Groups that share a tile whole, in part and not at all; with and without a counter; without keys.
void run_all_groups() {
    Random random(3);
    for (const std::int64_t group : {1, 3, 4, 6}) {
        for (const std::int64_t kv_len : {0, 1, 200}) {
            for (const std::int64_t batch : {1, 40}) {
                CAPTURE(group);
                CAPTURE(kv_len);
                CAPTURE(batch);
                AttentionProblem problem(prefill_shape(batch, 130, kv_len, group), random);
                run_and_check(problem);
            }
        }
    }
}

}  // namespace

TEST_CASE("scenario: prefill on Hopper" * doctest::skip()) {
    start_software_gpu();
    run_all_groups();
}

TEST_CASE("scenario: prefill on Hopper whose maps the driver alone knows" * doctest::skip()) {
    start_software_gpu().address_in_maps = 64;
    run_all_groups();
}

TEST_CASE("prefill on Hopper is given maps of its tensors") {
    for (const char* scenario : {"scenario: prefill on Hopper",
                                 "scenario: prefill on Hopper whose maps the driver alone knows"}) {
        const TemporaryDirectory cache;
        REQUIRE_PASSED(run(scenario, fake_gpu(cache)));
    }
}

TEST_CASE("scenario: maps of a form" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    const AttentionShape shape = prefill_shape(1, 130, 140, 1);
    AttentionProblem first(shape, random);
    run_and_check(first);
    const int maps = fake.maps;
    CHECK(maps == 6);  // two to find out where addresses stand, and four
    // Other tensors of the same form: the driver is not asked.
    AttentionProblem second(shape, random);
    run_and_check(second);
    CHECK(fake.maps == maps);
    // A plan that knows no addresses.
    AttentionArgs args = args_of(second);
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.out})
        tensor->data = nullptr;
    const AttentionPlan plan(args);
    CHECK(fake.maps == maps + 4);
    const AttentionProblem untouched = first;
    plan.run(args_of(first));
    CHECK(last_run().starts_with(kName));
    check_result(first, untouched);
    CHECK(fake.maps == maps + 4);
    // The last of the four is of V.
    CHECK(fake.map.rank == 4);
    CHECK(fake.map.size == std::array<std::uint64_t, 5>{64, 140, 2, 1, 0});
    CHECK(fake.map.box == std::array<std::uint32_t, 5>{64, 128, 1, 1, 0});
}

TEST_CASE("tensor maps are made once for a form, and addresses are put in") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: maps of a form", fake_gpu(cache)));
}

TEST_CASE("scenario: the variant wgmma" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    AttentionProblem problem(prefill_shape(2, 5, 70, 3), random);
    const AttentionProblem untouched = problem;
    ops::attn_prefill(args_of(problem), ops::Variant::wgmma);
    CHECK(last_run().starts_with(kName));
    check_result(problem, untouched);
    try {
        ops::attn_decode(args_of(problem), ops::Variant::wgmma);
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        check_sentence(error.what());
    }
    AttentionShape shape = prefill_shape(2, 130, 70, 1);
    shape.mask = MaskKind::heads;
    AttentionProblem masked(shape, random);
    const AttentionProblem masked_before = masked;
    ops::attn_prefill(args_of(masked), ops::Variant::wgmma);
    CHECK(last_run().starts_with(kName));
    check_result(masked, masked_before);
    // The copy engine does not walk backwards.
    AttentionProblem backwards(prefill_shape(2, 130, 70, 1), random);
    AttentionArgs args = args_of(backwards);
    args.k.strides[2] = 0;
    try {
        ops::attn_prefill(args, ops::Variant::wgmma);
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::unsupported);
        CHECK(std::string(error.what()).find("the tensor copy engine") != std::string::npos);
    }
    attention(args);
    CHECK(last_run().starts_with("attn_prefill_mma<"));
}

TEST_CASE("scenario: ragged queries and pages on Hopper" * doctest::skip()) {
    start_software_gpu();
    Random random(3);
    ServingLimits limits = {
        .batch = 3, .q_len = 200, .kv_len = 300, .page_sizes = {1, 8, 16, 48, 64, 128, 256}};
    int paged = 0;
    for (int i = 0; i < 60; ++i) {
        ServingShape shape = random_serving_shape(random, limits, random.chance(0.5));
        shape.head_dim = 64;
        shape.causal = random.chance(0.5);
        add_options(shape, {.window = random.chance(0.3), .mask = random.chance(0.3)}, random);
        CAPTURE(shape.text());
        ServingProblem problem(shape, random);
        ServingProblem expected = problem;
        const Scope scope("attn_prefill_wgmma");
        attention(serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0})));
        if (last_run().empty()) continue;
        CHECK(last_run().starts_with(kName));
        if (is_paged(shape.keys)) ++paged;
        reference::attention(serving_call<reference::Attention>(shape, expected.views()));
        for (ServingProblem* each : {&problem, &expected})
            CHECK(each->idle_rows_untouched(each->at("out"), each->at("lse")));
        CHECK(compare(problem.at("out"), expected.at("out"), {1e-2, 1e-2}).within);
    }
    CHECK(paged > 10);
}

TEST_CASE("prefill on Hopper is given pages and ragged queries") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: ragged queries and pages on Hopper", fake_gpu(cache)));
}

TEST_CASE("the variant wgmma runs its kernel, or says why not") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: the variant wgmma", fake_gpu(cache)));
}

}  // namespace jitney::tests
