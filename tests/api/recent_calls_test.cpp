// What a thread prepared for its last calls serves a call only where a call of its own would ask
// for the same: every field of every operation that has recent calls is varied, one at a time.
#include <deque>

#include "jitney/backend.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/call_variations.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/observed_call.hpp"
#include "tests/api/varied_calls.hpp"

namespace jitney::tests {
namespace {

// How many calls of each outcome there were: a test of refusals alone would say little.
struct Tally {
    int right = 0;
    int refused = 0;
};

template <class Args>
void check_alone(CallArena& arena, const Args& args, const Observed& alone, Tally& tally) {
    tally.refused += alone.refused() ? 1 : 0;
    if (alone.refused() || alone.undefined()) return;
    ++tally.right;
    const std::string wrong = difference_from_reference(arena, args, alone);
    CHECK_MESSAGE(wrong.empty(), wrong);
}

// Either call does behind the other what it does alone on its thread.
template <class Args>
Tally check_variations(VariedCall<Args>& call) {
    CAPTURE(call.name);
    Tally tally;
    const auto first = [&call] { call_operation(call.args); };
    const Observed own = observe_alone(call.arena, {first});
    check_alone(call.arena, call.args, own, tally);
    REQUIRE(tally.right == 1);
    for (const Variation<Args>& variation : variations(call.args)) {
        CAPTURE(variation.field);
        CAPTURE(variation.what);
        const auto second = [&variation] { call_operation(variation.args); };
        const Observed alone = observe_alone(call.arena, {second});
        check_alone(call.arena, variation.args, alone, tally);
        const std::string behind = difference(observe_alone(call.arena, {first, second}), alone);
        CHECK_MESSAGE(behind.empty(), behind);
        const std::string before = difference(observe_alone(call.arena, {second, first}), own);
        CHECK_MESSAGE(before.empty(), before);
    }
    return tally;
}

// Every field of the list is given in one of the calls at least.
template <class Args>
void check_complete(const std::deque<VariedCall<Args>>& calls) {
    for_each_field<Args>([&](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        int given = 0;
        for (const VariedCall<Args>& call : calls) {
            if constexpr (Field::is_tensor) given += tensor_in(call.args.*field.member) ? 1 : 0;
            if constexpr (Field::is_struct) given += struct_in(call.args.*field.member) ? 1 : 0;
        }
        if constexpr (Field::is_tensor || Field::is_struct)
            CHECK_MESSAGE(given > 0, "no call to vary has ", field.name);
    });
}

// How many of the calls that differ from each are right, and refused, at least.
template <class Args>
void check_operation(int right, int refused) {
    start_observed_gpu();
    auto calls = varied_calls<Args>();
    check_complete(calls);
    for (VariedCall<Args>& call : calls) {
        const Tally tally = check_variations(call);
        CHECK(tally.right > right);
        CHECK(tally.refused > refused);
    }
}

}  // namespace

TEST_CASE("scenario: attention calls that differ in one field" * doctest::skip()) {
    check_operation<AttentionArgs>(40, 100);
}
TEST_CASE("scenario: rotary_emb calls that differ in one field" * doctest::skip()) {
    check_operation<RotaryArgs>(10, 40);
}
TEST_CASE("scenario: append_kv calls that differ in one field" * doctest::skip()) {
    check_operation<AppendKvArgs>(10, 40);
}
TEST_CASE("scenario: merge_states calls that differ in one field" * doctest::skip()) {
    check_operation<MergeStatesArgs>(10, 40);
}
TEST_CASE("scenario: rms_norm calls that differ in one field" * doctest::skip()) {
    check_operation<RmsNormArgs>(10, 40);
}
TEST_CASE("scenario: gated_activation calls that differ in one field" * doctest::skip()) {
    check_operation<GatedActivationArgs>(8, 30);
}
TEST_CASE("scenario: fp8_quantize calls that differ in one field" * doctest::skip()) {
    check_operation<Fp8QuantizeArgs>(10, 40);
}
TEST_CASE("scenario: fp8_gemm calls that differ in one field" * doctest::skip()) {
    check_operation<Fp8GemmArgs>(10, 40);
}
TEST_CASE("scenario: fp8_linear calls that differ in one field" * doctest::skip()) {
    check_operation<Fp8LinearArgs>(10, 40);
}
TEST_CASE("scenario: fp8_linear_backward calls that differ in one field" * doctest::skip()) {
    check_operation<Fp8LinearBackwardArgs>(10, 40);
}
TEST_CASE("scenario: fp8_linear_inference calls that differ in one field" * doctest::skip()) {
    check_operation<Fp8LinearInferenceArgs>(8, 30);
}

TEST_CASE("a call is served as if no other went before, whatever differs") {
    const TemporaryDirectory cache;
#define JITNEY_RUN(name, call, Args) \
    REQUIRE_PASSED(run("scenario: " #call " calls that differ in one field", fake_gpu(cache)));
    JITNEY_FOR_EACH_OPERATION(JITNEY_RUN)
#undef JITNEY_RUN
}

TEST_CASE("scenario: calls that are decided otherwise" * doctest::skip()) {
    start_observed_gpu();
    Random random(3);
    AttentionShape shape = decode_shape(40);
    shape.dtype = DType::fp32;  // for scalar kernels alone
    AttentionProblem problem(shape, random);
    const AttentionArgs args = args_of(problem);
    // The environment names a kernel that can't, and the call falls back; a scope is strict.
    attention(args);
    CHECK(last_run().starts_with("attn_decode_scalar<"));
    CHECK_THROWS_AS(ops::attn_prefill(args, ops::Variant::mma), Error);
    ops::attn_prefill(args, ops::Variant::scalar);
    CHECK(last_run().starts_with("attn_prefill_scalar<"));
    {
        const Scope scope("attn_prefill_mma");
        CHECK_THROWS_AS(attention(args), Error);
    }
    {
        const Scope scope("attn_prefill_scalar");
        attention(args);
        CHECK(last_run().starts_with("attn_prefill_scalar<"));
    }
    attention(args);
    CHECK(last_run().starts_with("attn_decode_scalar<"));
}

TEST_CASE("a call whose kernel is named otherwise is prepared anew") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: calls that are decided otherwise",
                       fake_gpu(cache, {{"JITNEY_FORCE", "attn_prefill_mma"}})));
}

}  // namespace jitney::tests
