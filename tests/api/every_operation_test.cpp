// What calls and plans of every operation have in common: no allocation, no synchronisation,
// launches that can be captured, and what explain tells.
#include <utility>

#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/observed_call.hpp"
#include "tests/api/varied_calls.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/fp8_linear_problem.hpp"

namespace jitney::tests {
namespace {

std::string last_of(const Explanation& explained) {
    return explained.chosen;
}
std::string last_of(const ExplainedLaunches& explained) {
    return explained.launches.back().spec;
}
std::size_t launches_of(const Explanation& explained) {
    return explained.before.size() + 1;
}
std::size_t launches_of(const ExplainedLaunches& explained) {
    return explained.launches.size();
}

// That `call`, once it ran, costs launches and nothing else.
template <class Call>
void check_hot(std::size_t launches, const Call& call) {
    fake::Cuda& fake = fake_cuda();
    call();
    const int launched = fake.launches;
    const int loads = fake.loads;
    const int allocations = fake.allocations;
    const int clears = fake.clears;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 10; ++i)
        call();
    CHECK(allocations_of_this_thread() == before);
    CHECK(static_cast<std::size_t>(fake.launches - launched) == 10 * launches);
    CHECK(fake.loads == loads);
    CHECK(fake.allocations == allocations);
    CHECK(fake.clears == clears);
    CHECK(fake.synchronizations == 0);
}

template <class Args>
void check_hot_calls() {
    for (VariedCall<Args>& call : varied_calls<Args>()) {
        CAPTURE(call.name);
        const auto explained = explain(call.args);
        check_hot(launches_of(explained), [&] { call_operation(call.args); });
        CHECK(last_run() == last_of(explained));
        const Plan<Args> plan(call.args);
        check_hot(launches_of(explained), [&] { plan.run(call.args); });
        CHECK(last_run() == last_of(explained));
        CHECK(last_of(plan.explanation()) == last_of(explained));
        CHECK(launches_of(plan.explanation()) == launches_of(explained));
        CHECK(plan.explanation().workspace_bytes == plan.workspace_bytes());
        CHECK(plan.workspace_bytes() <= explained.workspace_bytes);
    }
}

// Its launches alone are in the graph, where the workspace is the caller's.
template <class Args>
void check_captured(const Args& args) {
    fake::Cuda& fake = fake_cuda();
    const Plan<Args> plan(args);
    const int launches = fake.launches;
    const int allocations = fake.allocations;
    fake.capture_status = 1;
    plan.run(args);
    fake.capture_status = 0;
    CHECK(static_cast<std::size_t>(fake.launches - launches) == launches_of(plan.explanation()));
    bool own_memory = plan.workspace_bytes() == 0;
    if constexpr (requires { args.workspace; }) own_memory |= args.workspace.data != nullptr;
    if (own_memory) CHECK(fake.allocations == allocations);
}

template <class Args>
void check_captures() {
    fake::Cuda& fake = fake_cuda();
    for (VariedCall<Args>& call : varied_calls<Args>()) {
        CAPTURE(call.name);
        fake.capture_status = 0;
        check_captured(call.args);
    }
}

template <class Args>
void check_empty_plan() {
    Plan<Args> plan;
    CHECK_FALSE(static_cast<bool>(plan));
    CHECK(plan.workspace_bytes() == 0);
    CHECK(plan.explanation().candidates.empty());
    const auto refused = [](const Plan<Args>& none) {
        check_refused(BadCall<Args>{"of no call", [](auto&) {}, {"plan", "no call"}}, Args{},
                      [&](const Args& args) { none.run(args); });
        CHECK(last_run().empty());
    };
    refused(plan);
    VariedCall<Args> call = std::move(varied_calls<Args>().front());
    plan = Plan<Args>(call.args);
    CHECK(static_cast<bool>(plan));
    plan.run(call.args);
    CHECK_FALSE(last_run().empty());
    const Plan<Args> taken = std::move(plan);
    refused(plan);  // NOLINT: what a moved plan does is what is asked
    taken.run(call.args);
}

}  // namespace

TEST_CASE("scenario: hot calls and plans of every operation" * doctest::skip()) {
    start_software_gpu().kernel = nullptr;  // the software would allocate
#define JITNEY_CHECK_HOT(name, call, Args) check_hot_calls<Args>();
    JITNEY_FOR_EACH_OPERATION(JITNEY_CHECK_HOT)
#undef JITNEY_CHECK_HOT
}

TEST_CASE("a call of a form that was seen, and a run of a plan, allocate nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: hot calls and plans of every operation", fake_gpu(cache)));
}

TEST_CASE("scenario: captured plans of every operation" * doctest::skip()) {
    start_software_gpu().kernel = nullptr;
#define JITNEY_CHECK_CAPTURES(name, call, Args) check_captures<Args>();
    JITNEY_FOR_EACH_OPERATION(JITNEY_CHECK_CAPTURES)
#undef JITNEY_CHECK_CAPTURES
}

TEST_CASE("a plan of any operation can be captured at once") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: captured plans of every operation", fake_gpu(cache)));
}

TEST_CASE("scenario: plans of no call" * doctest::skip()) {
    start_software_gpu();
#define JITNEY_CHECK_EMPTY(name, call, Args) check_empty_plan<Args>();
    JITNEY_FOR_EACH_OPERATION(JITNEY_CHECK_EMPTY)
#undef JITNEY_CHECK_EMPTY
}

TEST_CASE("a plan can be made later, and one of no call says so when it runs") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: plans of no call", fake_gpu(cache)));
}

TEST_CASE("scenario: plans without rows" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda}) {
        const Device where{type, 0};
        HostTensor x(DType::bf16, {0, 8});
        HostTensor codes(DType::fp8_e4m3, {0, 8});
        HostTensor product(DType::fp8_e4m3, {0, 8});
        HostTensor number(DType::fp32, {1});
        HostTensor amax(DType::fp32, {1});
        amax.set(0, 7.0);
        Fp8QuantizeArgs cast;
        cast.x = x.view(where);
        cast.out = codes.view(where);
        cast.amax = amax.view(where);
        const Plan<Fp8QuantizeArgs> of_cast(cast);
        of_cast.run(cast);
        CHECK(last_run().empty());
        CHECK(amax.get(0) == 0.0);
        CHECK(of_cast.explanation().chosen.empty());

        amax.set(0, 7.0);
        HostTensor b(DType::fp8_e4m3, {8, 8});
        Fp8GemmArgs gemm;
        gemm.a = codes.view(where);
        gemm.b = b.view(where);
        gemm.out = product.view(where);
        gemm.dequant_scale = gemm.out_multiplier = number.view(where);
        gemm.amax = amax.view(where);
        const Plan<Fp8GemmArgs> of_product(gemm);
        of_product.run(gemm);
        CHECK(last_run().empty());
        CHECK(amax.get(0) == 0.0);
    }
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("a plan without rows writes what is known of nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: plans without rows", fake_gpu(cache)));
}

TEST_CASE("plans on the host say that the reference runs") {
    Fp8LinearProblem layer({});
    const auto host = [](HostTensor& tensor) { return tensor.view(); };
    fp8_state_reset(layer.state.view());
    const Plan<Fp8LinearArgs> plan(layer.forward(host));
    REQUIRE(plan.explanation().launches.size() == 1);
    CHECK(plan.explanation().launches[0].spec == "reference");
    CHECK(plan.workspace_bytes() == 0);
    plan.run(layer.forward(host));
    CHECK(last_run() == "reference");
    // Nothing is multiplied, and the scales that are saved are the state's.
    Fp8LinearCase test;
    test.rows = 0;
    Fp8LinearProblem empty(test);
    fp8_state_reset(empty.state.view());
    const Plan<Fp8LinearArgs> of_nothing(empty.forward(host));
    of_nothing.run(empty.forward(host));
    CHECK(last_run().empty());
    CHECK(empty.scales.get(0) == 1.0);
}

}  // namespace jitney::tests
