// Calls of norms and gates.
#include "tests/api/varied_calls.hpp"

namespace jitney::tests {
namespace {

RmsNormArgs norm_with_residual(CallArena& arena) {
    RmsNormArgs args;
    args.x = arena.numbers(DType::bf16, {5, 64});
    args.residual = arena.numbers(DType::bf16, {5, 64});
    args.sum = arena.numbers(DType::bf16, {5, 64});
    args.weight = arena.numbers(DType::bf16, {64});
    args.bias = arena.numbers(DType::bf16, {64});
    args.out = arena.numbers(DType::bf16, {5, 64});
    args.eps = 1e-4F;
    return args;
}

RmsNormArgs norm_in_place(CallArena& arena) {
    RmsNormArgs args = norm_with_residual(arena);
    args.sum = args.residual;
    args.out = args.x;
    args.bias.reset();
    args.subtract_mean = true;
    return args;
}

RmsNormArgs norm_to_codes(CallArena& arena) {
    RmsNormArgs args;
    args.x = arena.numbers(DType::fp16, {2, 3, 64});
    args.weight = arena.numbers(DType::fp32, {64});
    args.out = arena.numbers(DType::bf16, {2, 3, 64});
    args.out.dtype = DType::fp8_e4m3;
    args.multiplier = arena.numbers(DType::fp32, {1});
    args.one_plus_weight = true;
    return args;
}

RmsNormArgs norm_to_scaled_codes(CallArena& arena) {
    RmsNormArgs args = norm_to_codes(arena);
    args.multiplier.reset();
    args.scale = arena.numbers(DType::fp32, {6});
    return args;
}

GatedActivationArgs gate_beside_up(CallArena& arena) {
    GatedActivationArgs args;
    args.gate = arena.numbers(DType::bf16, {5, 128});
    args.out = arena.numbers(DType::bf16, {5, 64});
    args.activation = Activation::gelu_tanh;
    return args;
}

GatedActivationArgs gate_in_place(CallArena& arena) {
    GatedActivationArgs args;
    args.gate = arena.numbers(DType::fp32, {5, 64});
    args.up = arena.numbers(DType::fp32, {5, 64});
    args.out = args.gate;
    return args;
}

GatedActivationArgs gate_to_codes(CallArena& arena) {
    GatedActivationArgs args = gate_beside_up(arena);
    args.out.dtype = DType::fp8_e4m3;
    args.multiplier = arena.numbers(DType::fp32, {1});
    return args;
}

GatedActivationArgs gate_to_scaled_codes(CallArena& arena) {
    GatedActivationArgs args = gate_to_codes(arena);
    args.multiplier.reset();
    args.scale = arena.numbers(DType::fp32, {5});
    return args;
}

}  // namespace

template <>
std::deque<VariedCall<RmsNormArgs>> varied_calls() {
    std::deque<VariedCall<RmsNormArgs>> calls;
    add_call(calls, "with a residual", &norm_with_residual);
    add_call(calls, "in place", &norm_in_place);
    add_call(calls, "to codes", &norm_to_codes);
    add_call(calls, "to codes with scales", &norm_to_scaled_codes);
    return calls;
}

template <>
std::deque<VariedCall<GatedActivationArgs>> varied_calls() {
    std::deque<VariedCall<GatedActivationArgs>> calls;
    add_call(calls, "beside up", &gate_beside_up);
    add_call(calls, "in place", &gate_in_place);
    add_call(calls, "to codes", &gate_to_codes);
    add_call(calls, "to codes with scales", &gate_to_scaled_codes);
    return calls;
}

}  // namespace jitney::tests
