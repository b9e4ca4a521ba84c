// Merges, and the FP8 operations.
#include <deque>
#include <vector>

#include "tests/api/varied_calls.hpp"

namespace jitney::tests {
namespace {

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kIn = 48;
constexpr std::int64_t kOut = 24;

// What the calls show: it lives as long as the process.
std::span<const PartialState> kept(std::vector<PartialState> parts) {
    static std::deque<std::vector<PartialState>> all;
    return all.emplace_back(std::move(parts));
}

PartialState part(CallArena& arena) {
    return {arena.numbers(DType::bf16, {2, 3, 4, 16}), arena.numbers(DType::fp32, {2, 4, 3})};
}

MergeStatesArgs merge(CallArena& arena) {
    MergeStatesArgs args;
    args.parts = kept({part(arena), part(arena)});
    args.out = arena.numbers(DType::bf16, {2, 3, 4, 16});
    args.lse = arena.numbers(DType::fp32, {2, 4, 3});
    return args;
}

MergeStatesArgs merge_in_place(CallArena& arena) {
    MergeStatesArgs args;
    args.parts = kept({part(arena), part(arena)});
    args.out = args.parts[1].out;
    args.lse = args.parts[1].lse;
    return args;
}

MergeStatesArgs merge_of_several(CallArena& arena) {
    MergeStatesArgs args;
    args.parts =
        kept({{arena.numbers(DType::bf16, {3, 7, 4, 16}), arena.numbers(DType::fp32, {3, 7, 4})}});
    args.out = arena.numbers(DType::bf16, {7, 4, 16});
    args.lse = arena.numbers(DType::fp32, {7, 4});
    return args;
}

Fp8QuantizeArgs cast(CallArena& arena) {
    Fp8QuantizeArgs args;
    args.x = arena.numbers(DType::bf16, {kRows, kIn});
    args.out = arena.zeros(DType::fp8_e4m3, {kRows, kIn});
    args.out_transposed = arena.zeros(DType::fp8_e4m3, {kIn, kRows});
    args.multiplier = arena.numbers(DType::fp32, {1});
    args.scale = arena.zeros(DType::fp32, {1});
    args.amax = arena.zeros(DType::fp32, {1});
    return args;
}

Fp8QuantizeArgs dynamic_cast_of(CallArena& arena) {
    Fp8QuantizeArgs args = cast(arena);
    args.out_transposed.reset();
    args.dynamic = true;
    return args;
}

Fp8QuantizeArgs dynamic_cast_alone(CallArena& arena) {
    Fp8QuantizeArgs args;
    args.x = arena.numbers(DType::fp32, {3, kRows, kIn});
    args.out = arena.zeros(DType::fp8_e5m2, {3, kRows, kIn});
    args.dynamic = true;
    args.workspace = arena.workspace(std::size_t{1} << 17);
    return args;
}

// A scale a row, in a column of a matrix.
Fp8QuantizeArgs cast_of_rows(CallArena& arena) {
    Fp8QuantizeArgs args;
    args.x = arena.numbers(DType::bf16, {kRows, kIn});
    args.out = arena.zeros(DType::fp8_e4m3, {kRows, kIn});
    args.scale = arena.zeros(DType::fp32, {kRows, 1});
    args.dynamic = true;
    args.granularity = Fp8Granularity::row;
    return args;
}

Fp8QuantizeArgs cast_of_blocks(CallArena& arena) {
    Fp8QuantizeArgs args;
    args.x = arena.numbers(DType::fp32, {3, kRows, kIn});
    args.out = arena.zeros(DType::fp8_e5m2, {3, kRows, kIn});
    args.scale = arena.zeros(DType::fp32, {1, 1});
    args.dynamic = args.power_of_two = true;
    args.granularity = Fp8Granularity::block;
    return args;
}

Fp8QuantizeArgs amax_alone(CallArena& arena) {
    Fp8QuantizeArgs args;
    args.x = arena.numbers(DType::fp16, {kRows, kIn});
    args.amax = arena.zeros(DType::fp32, {1});
    return args;
}

Fp8GemmArgs product(CallArena& arena) {
    Fp8GemmArgs args;
    args.a = arena.numbers(DType::fp8_e4m3, {kRows, kIn});
    args.b = arena.numbers(DType::fp8_e5m2, {kOut, kIn});
    args.out = arena.zeros(DType::fp8_e4m3, {kRows, kOut});
    args.dequant_scale = arena.numbers(DType::fp32, {1});
    args.bias = arena.numbers(DType::bf16, {kOut});
    args.out_multiplier = arena.numbers(DType::fp32, {1});
    args.amax = arena.zeros(DType::fp32, {1});
    args.trans_b = true;
    return args;
}

Fp8GemmArgs divided_product(CallArena& arena) {
    Fp8GemmArgs args;
    args.a = arena.numbers(DType::fp8_e4m3, {16, 1024});
    args.b = arena.numbers(DType::fp8_e4m3, {1024, 32});
    args.out = arena.zeros(DType::bf16, {16, 32});
    args.dequant_scale = arena.numbers(DType::fp32, {1});
    args.workspace = arena.workspace(std::size_t{1} << 17);
    return args;
}

Fp8GemmArgs product_of_sides(CallArena& arena) {
    Fp8GemmArgs args = divided_product(arena);
    args.dequant_scale.reset();
    args.scale_a = arena.numbers(DType::fp32, {16});
    args.scale_b = arena.numbers(DType::fp32, {32});
    return args;
}

Fp8GemmArgs product_of_blocks(CallArena& arena) {
    Fp8GemmArgs args = divided_product(arena);
    args.dequant_scale.reset();
    args.scale_a = arena.numbers(DType::fp32, {16, 8});
    args.scale_b = arena.numbers(DType::fp32, {1, 8});
    return args;
}

Fp8GemmArgs product_of_groups(CallArena& arena) {
    Fp8GemmArgs args;
    args.a = arena.numbers(DType::fp8_e4m3, {kRows, kIn});
    args.b = arena.numbers(DType::fp8_e4m3, {2, kOut, kIn});
    args.group_indptr = arena.integers(DType::int32, {3}, {0, 1, kRows});
    args.out = arena.zeros(DType::bf16, {kRows, kOut});
    args.scale_a = arena.numbers(DType::fp32, {kRows});
    args.scale_b = arena.numbers(DType::fp32, {2, kOut});
    args.trans_b = true;
    return args;
}

Fp8LinearSaved saved(CallArena& arena) {
    return {arena.numbers(DType::fp8_e4m3, {kRows, kIn}),
            arena.numbers(DType::fp8_e4m3, {kOut, kIn}), arena.numbers(DType::fp32, {2})};
}

Fp8LinearArgs layer(CallArena& arena) {
    Fp8LinearArgs args;
    args.x = arena.numbers(DType::bf16, {kRows, kIn});
    args.weight = arena.numbers(DType::bf16, {kOut, kIn});
    args.bias = arena.numbers(DType::bf16, {kOut});
    args.y = arena.zeros(DType::bf16, {kRows, kOut});
    args.state = arena.zeros(DType::fp32, {3, fp8_state_columns(args.recipe)});
    args.saved = saved(arena);
    return args;
}

Fp8LinearArgs layer_that_saves_nothing(CallArena& arena) {
    Fp8LinearArgs args = layer(arena);
    args.recipe.scaling = Fp8Scaling::dynamic;
    args.state = arena.zeros(DType::fp32, {3, fp8_state_columns(args.recipe)});
    args.saved.reset();
    args.bias.reset();
    args.workspace = arena.workspace(std::size_t{1} << 17);
    return args;
}

Fp8LinearBackwardArgs gradients(CallArena& arena) {
    Fp8LinearBackwardArgs args;
    args.grad_y = arena.numbers(DType::bf16, {kRows, kOut});
    args.saved = saved(arena);
    args.grad_x = arena.zeros(DType::bf16, {kRows, kIn});
    args.grad_weight = arena.zeros(DType::fp32, {kOut, kIn});
    args.grad_bias = arena.zeros(DType::bf16, {kOut});
    args.state = arena.zeros(DType::fp32, {3, fp8_state_columns(args.recipe)});
    return args;
}

Fp8LinearBackwardArgs gradient_of_input(CallArena& arena) {
    Fp8LinearBackwardArgs args = gradients(arena);
    args.grad_weight.reset();
    args.grad_bias.reset();
    args.recipe.scaling = Fp8Scaling::dynamic;
    args.state = arena.zeros(DType::fp32, {3, fp8_state_columns(args.recipe)});
    args.workspace = arena.workspace(std::size_t{1} << 17);
    return args;
}

// A scale an output channel, in a column of a matrix.
Fp8LinearInferenceArgs served_layer(CallArena& arena) {
    Fp8LinearInferenceArgs args;
    args.x = arena.numbers(DType::bf16, {kRows, kIn});
    args.weight = arena.numbers(DType::fp8_e4m3, {kOut, kIn});
    args.weight_scale = arena.numbers(DType::fp32, {kOut, 1});
    args.bias = arena.numbers(DType::bf16, {kOut});
    args.y = arena.zeros(DType::bf16, {kRows, kOut});
    return args;
}

Fp8LinearInferenceArgs served_layer_of_one_scale(CallArena& arena) {
    Fp8LinearInferenceArgs args = served_layer(arena);
    args.weight_scale = arena.numbers(DType::fp32, {1});
    args.x_scale = arena.numbers(DType::fp32, {1});
    args.bias.reset();
    args.workspace = arena.workspace(std::size_t{1} << 17);
    return args;
}

Fp8LinearInferenceArgs served_layer_of_blocks(CallArena& arena) {
    Fp8LinearInferenceArgs args;
    args.x = arena.numbers(DType::fp32, {3, kRows, 144});
    args.weight = arena.numbers(DType::fp8_e4m3, {kOut, 144});
    args.weight_scale = arena.numbers(DType::fp32, {1, 2});
    args.y = arena.zeros(DType::fp32, {3, kRows, kOut});
    return args;
}

}  // namespace

template <>
std::deque<VariedCall<MergeStatesArgs>> varied_calls() {
    std::deque<VariedCall<MergeStatesArgs>> calls;
    add_call(calls, "apart", &merge);
    add_call(calls, "in place", &merge_in_place);
    add_call(calls, "of several in a tensor", &merge_of_several);
    return calls;
}

template <>
std::deque<VariedCall<Fp8QuantizeArgs>> varied_calls() {
    std::deque<VariedCall<Fp8QuantizeArgs>> calls;
    add_call(calls, "by a multiplier", &cast);
    add_call(calls, "dynamic", &dynamic_cast_of);
    add_call(calls, "dynamic, without its multiplier", &dynamic_cast_alone);
    add_call(calls, "a scale a row", &cast_of_rows);
    add_call(calls, "a scale a block", &cast_of_blocks);
    add_call(calls, "amax alone", &amax_alone);
    return calls;
}

template <>
std::deque<VariedCall<Fp8GemmArgs>> varied_calls() {
    std::deque<VariedCall<Fp8GemmArgs>> calls;
    add_call(calls, "of all tensors", &product);
    add_call(calls, "of a long k", &divided_product);
    add_call(calls, "with scales of rows and columns", &product_of_sides);
    add_call(calls, "with scales of blocks", &product_of_blocks);
    add_call(calls, "of groups", &product_of_groups);
    return calls;
}

template <>
std::deque<VariedCall<Fp8LinearArgs>> varied_calls() {
    std::deque<VariedCall<Fp8LinearArgs>> calls;
    add_call(calls, "delayed", &layer);
    add_call(calls, "dynamic, without codes", &layer_that_saves_nothing);
    return calls;
}

template <>
std::deque<VariedCall<Fp8LinearBackwardArgs>> varied_calls() {
    std::deque<VariedCall<Fp8LinearBackwardArgs>> calls;
    add_call(calls, "delayed", &gradients);
    add_call(calls, "dynamic, of the input", &gradient_of_input);
    return calls;
}

template <>
std::deque<VariedCall<Fp8LinearInferenceArgs>> varied_calls() {
    std::deque<VariedCall<Fp8LinearInferenceArgs>> calls;
    add_call(calls, "a scale a channel", &served_layer);
    add_call(calls, "one scale", &served_layer_of_one_scale);
    add_call(calls, "a scale a block", &served_layer_of_blocks);
    return calls;
}

}  // namespace jitney::tests
