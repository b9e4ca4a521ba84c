// Runs of plans: whatever a call would refuse, a run refuses, and what a plan lets differ gives
// the results of the call. Every field is varied, one at a time.
#include "jitney/plan.hpp"

#include <doctest/doctest.h>

#include "operations/attention/fields.hpp"
#include "tests/api/call_variations.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/observed_call.hpp"
#include "tests/api/varied_calls.hpp"

namespace jitney::tests {
namespace {

AttentionArgs without_addresses(AttentionArgs args) {
    for_each_tensor(args, [](const auto&, Tensor& tensor) { tensor.data = nullptr; });
    return args;
}

AttentionArgs on_host(AttentionArgs args) {
    for_each_tensor(args, [](const auto&, Tensor& tensor) {
        if (tensor.device == Device{DeviceType::cuda, 0}) tensor.device = {DeviceType::cpu, 0};
    });
    return args;
}

// Whether all tensors have memory that a plan could be made for.
bool is_known(const AttentionArgs& args) {
    bool known = true;
    for_each_tensor(
        args, [&known](const auto&, const Tensor& tensor) { known &= tensor.data != nullptr; });
    return known;
}

// `alone` is what the call does on a thread of its own.
void check_run(CallArena& arena, const AttentionPlan& plan, const Variation<AttentionArgs>& call,
               const Observed& alone) {
    if (alone.undefined()) return;
    const Observed run = observe(arena, [&] { plan.run(call.args); });
    if (alone.refused()) {
        CHECK(run.refused());
        CHECK(run.ran.empty());
    } else if (run.refused()) {
        const bool unaligned = run.error.find("reads 16 bytes at a time") != std::string::npos;
        const bool may_differ = call.differs != Differs::never || call.lies;
        CHECK_MESSAGE((unaligned || !may_differ), run.error);
    } else {
        const std::string wrong = difference_from_reference(arena, call.args, run);
        CHECK_MESSAGE(wrong.empty(), wrong);
    }
}

bool can_be_made(const AttentionArgs& args) {
    try {
        const AttentionPlan plan(args);
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("scenario: runs of a plan that differ in one field" * doctest::skip()) {
    start_observed_gpu();
    for (VariedCall<AttentionArgs>& varied : varied_attention_calls()) {
        CAPTURE(varied.name);
        const AttentionPlan plan(varied.args);
        const AttentionPlan of_unknown(without_addresses(varied.args));
        int refused = 0;
        for (const Variation<AttentionArgs>& call : variations(varied.args)) {
            CAPTURE(call.field);
            CAPTURE(call.what);
            const Observed alone = observe_alone(varied.arena, {[&] { attention(call.args); }});
            check_run(varied.arena, plan, call, alone);
            check_run(varied.arena, of_unknown, call, alone);
            if (!alone.refused()) continue;
            ++refused;
            // How large a workspace has to be is what the plan tells.
            if (is_known(call.args) && call.field != "workspace")
                CHECK_FALSE(can_be_made(call.args));
        }
        CHECK(refused > 100);
    }
}

TEST_CASE("a run of a plan refuses what the call would, and else gives its results") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: runs of a plan that differ in one field", fake_gpu(cache)));
}

TEST_CASE("a plan of the host refuses what the call would, and else gives its results") {
    for (VariedCall<AttentionArgs>& varied : varied_attention_calls()) {
        CAPTURE(varied.name);
        AttentionArgs args = on_host(varied.args);
        args.logits = {};
        args.logits_values = {};
        const AttentionPlan plan(args);
        for (Variation<AttentionArgs>& call : variations(args)) {
            CAPTURE(call.field);
            CAPTURE(call.what);
            const Observed alone = observe_alone(varied.arena, {[&] { attention(call.args); }});
            check_run(varied.arena, plan, call, alone);
        }
    }
}

}  // namespace jitney::tests
