// Runs of plans: whatever a call would refuse, a run refuses, and what a plan lets differ gives
// the results of the call. Every field is varied, one at a time.
#include "jitney/plan.hpp"

#include <doctest/doctest.h>

#include <type_traits>

#include "tests/api/call_variations.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/observed_call.hpp"
#include "tests/api/varied_calls.hpp"

namespace jitney::tests {
namespace {

template <class Args>
Args without_addresses(Args args) {
    for_each_tensor(args, [](const auto&, Tensor& tensor) { tensor.data = nullptr; });
    return args;
}

// Its tensors in memory of the host's, and without what a GPU alone can do.
template <class Args>
Args on_host(Args args) {
    for_each_tensor(args, [](const auto&, Tensor& tensor) {
        tensor.device = {DeviceType::cpu, 0};
    });
    if constexpr (std::is_same_v<Args, AttentionArgs>) {
        args.logits = {};
        args.logits_values = {};
    }
    return args;
}

// Whether all tensors have memory that a plan could be made for.
template <class Args>
bool is_known(const Args& args) {
    bool known = true;
    for_each_place(
        args, [&known](const auto&, const Tensor& tensor) { known &= tensor.data != nullptr; });
    return known;
}

// Whether a run may say no to a call that would be right alone: it is not one of the plan's.
template <class Args>
bool may_refuse(const Variation<Args>& call, const std::string& error) {
    if (error.find("reads 16 bytes at a time") != std::string::npos) return true;
    if (error.find("lies apart from") != std::string::npos) return true;
    const bool names_it = error.find(call.field) != std::string::npos;
    return names_it && error.find("plan") != std::string::npos && call.differs == Differs::never &&
           !call.lies;
}

// `alone` is what the call does on a thread of its own.
template <class Args>
void check_run(CallArena& arena, const Plan<Args>& plan, const Variation<Args>& call,
               const Observed& alone) {
    if (alone.undefined()) return;
    const Observed run = observe(arena, [&] { plan.run(call.args); });
    if (alone.refused()) {
        CHECK(run.refused());
        CHECK(run.ran.empty());
    } else if (run.refused()) {
        CHECK_MESSAGE(may_refuse(call, run.error), run.error);
    } else {
        CHECK(run.error == "");
        const std::string wrong = difference_from_reference(arena, call.args, run);
        CHECK_MESSAGE(wrong.empty(), wrong);
    }
}

template <class Args>
bool can_be_made(const Args& args) {
    try {
        const Plan<Args> plan(args);
        return true;
    } catch (const Error&) {
        return false;
    }
}

template <class Args>
void check_runs() {
    start_observed_gpu();
    for (VariedCall<Args>& varied : varied_calls<Args>()) {
        CAPTURE(varied.name);
        const Plan<Args> plan(varied.args);
        const Plan<Args> of_unknown(without_addresses(varied.args));
        int refused = 0;
        for (const Variation<Args>& call : variations(varied.args)) {
            CAPTURE(call.field);
            CAPTURE(call.what);
            const Observed alone =
                observe_alone(varied.arena, {[&] { call_operation(call.args); }});
            check_run(varied.arena, plan, call, alone);
            check_run(varied.arena, of_unknown, call, alone);
            if (!alone.refused()) continue;
            ++refused;
            // How large a workspace has to be is what the plan tells.
            if (is_known(call.args) && call.field != "workspace")
                CHECK_FALSE(can_be_made(call.args));
        }
        CHECK(refused > 40);
    }
}

template <class Args>
void check_runs_on_host() {
    for (VariedCall<Args>& varied : varied_calls<Args>()) {
        CAPTURE(varied.name);
        const Args args = on_host(varied.args);
        const Plan<Args> plan(args);
        for (const Variation<Args>& call : variations(args)) {
            CAPTURE(call.field);
            CAPTURE(call.what);
            const Observed alone =
                observe_alone(varied.arena, {[&] { call_operation(call.args); }});
            check_run(varied.arena, plan, call, alone);
        }
    }
}

}  // namespace

#define JITNEY_SCENARIO(name, call, Args)                                        \
    TEST_CASE("scenario: runs of a plan of " #call " that differ in one field" * \
              doctest::skip()) {                                                 \
        check_runs<Args>();                                                      \
    }
JITNEY_FOR_EACH_OPERATION(JITNEY_SCENARIO)
#undef JITNEY_SCENARIO

TEST_CASE("a run of a plan refuses what the call would, and else gives its results") {
    const TemporaryDirectory cache;
#define JITNEY_RUN(name, call, Args) \
    REQUIRE_PASSED(                  \
        run("scenario: runs of a plan of " #call " that differ in one field", fake_gpu(cache)));
    JITNEY_FOR_EACH_OPERATION(JITNEY_RUN)
#undef JITNEY_RUN
}

TEST_CASE_TEMPLATE("a plan of the host refuses what the call would, and else gives its results",
                   Args, AttentionArgs, RotaryArgs, AppendKvArgs, Fp8QuantizeArgs, Fp8GemmArgs,
                   Fp8LinearArgs, Fp8LinearBackwardArgs, Fp8LinearInferenceArgs) {
    check_runs_on_host<Args>();
}

}  // namespace jitney::tests
