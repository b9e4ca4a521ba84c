#include "jitney/fp8_linear.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "operations/explained_choice.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/fp8_linear/pass.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/started_call.hpp"
#include "runtime/driver.hpp"

namespace jitney {
namespace {

enum Row : int { kX = 0, kWeight = 1, kGradY = 2 };

// Numbers of a state and of the scales that were saved.
// Counted in integers: the address may be null where sizes alone are asked for.
float* number_at(const Tensor& tensor, std::int64_t index) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
    return reinterpret_cast<float*>(begin + static_cast<std::uintptr_t>(index) * sizeof(float));
}
float* state_at(const Tensor& state, Row row, int column) {
    return number_at(state, row * state.strides[0] + column);
}
Tensor state_number(const Tensor& state, Row row, Fp8StateColumn column) {
    return Tensor::contiguous(state_at(state, row, column), DType::fp32, {1}, state.device);
}

float largest_of(DType format) {
    return format == DType::fp8_e4m3 ? kE4m3Largest : kE5m2Largest;
}

bool is_empty(const checks::Fp8LinearCall& call) {
    return call.y.shape[0] == 0 || call.y.shape[1] == 0;
}

// A tensor's cast as its row of the state says. Its amax is noted there.
Fp8LinearCast cast_of(const Tensor& x, const Tensor* codes, const Tensor& state, Row row,
                      const Fp8Recipe& recipe) {
    Fp8LinearCast cast;
    cast.args.x = x;
    cast.args.amax = state_number(state, row, kFp8StateAmax);
    if (codes == nullptr) return cast;
    cast.args.out = *codes;
    cast.args.multiplier = state_number(state, row, kFp8StateMultiplier);
    cast.args.dynamic = recipe.scaling == Fp8Scaling::dynamic;
    if (cast.args.dynamic) {
        cast.args.scale = state_number(state, row, kFp8StateScale);
    } else {
        cast.state = state_at(state, row, 0);
    }
    return cast;
}

Fp8UpdateParams update_of(const Fp8Recipe& recipe) {
    Fp8UpdateParams params{};
    params.history = recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history;
    params.latest = recipe.amax == Fp8Amax::latest ? 1 : 0;
    params.margin_power = std::ldexp(1.0f, recipe.margin);
    return params;
}

// Of a call without results: the scales that are saved are the state's, which stays as it is.
Fp8LinearPass empty_pass(const Fp8LinearArgs& args) {
    Fp8LinearPass pass;
    if (!args.saved) return pass;
    Fp8UpdateParams& update = pass.update.emplace();
    update.rows[0] = {state_at(args.state, kX, 0), 0.0f, number_at(args.saved->scales, 0)};
    update.rows[1] = {state_at(args.state, kWeight, 0), 0.0f, number_at(args.saved->scales, 1)};
    return pass;
}

Fp8LinearPass forward_pass(const Fp8LinearArgs& args, const checks::Fp8LinearCall& call) {
    if (is_empty(call)) return empty_pass(args);
    Fp8LinearPass pass;
    pass.casts = {cast_of(call.x, &call.x_codes, args.state, kX, args.recipe),
                  cast_of(call.weight, &call.weight_codes, args.state, kWeight, args.recipe)};

    const auto scale = [&](int index) {
        return args.saved ? number_at(args.saved->scales, index) : nullptr;
    };
    const float largest = largest_of(checks::forward_format(args.recipe));
    Fp8UpdateParams& update = pass.update.emplace(update_of(args.recipe));
    update.rows[0] = {state_at(args.state, kX, 0), largest, scale(0)};
    update.rows[1] = {state_at(args.state, kWeight, 0), largest, scale(1)};
    update.products[0] = {state_at(args.state, kX, kFp8StateDequant),
                          state_at(args.state, kX, kFp8StateScale),
                          state_at(args.state, kWeight, kFp8StateScale)};

    Fp8GemmArgs& product = pass.products[0].emplace();
    product.a = call.x_codes;
    product.b = call.weight_codes;
    product.trans_b = true;
    product.out = call.y;
    product.dequant_scale = state_number(args.state, kX, kFp8StateDequant);
    product.bias = args.bias;
    product.fast_accum = args.fast_accum;
    return pass;
}

// The products of a backward pass. Each is corrected by a number of its own.
void add_products(Fp8LinearPass& pass, const Fp8LinearBackwardArgs& args,
                  const checks::Fp8LinearBackwardCall& call) {
    Fp8GemmArgs product;
    product.a = call.grad_codes;
    product.fast_accum = args.fast_accum;
    if (call.grad_x) {
        product.b = call.weight_codes;
        product.out = *call.grad_x;
        product.dequant_scale = state_number(args.state, kWeight, kFp8StateDequant);
        pass.products[0] = product;
    }
    if (call.grad_weight) {
        product.trans_a = true;
        product.b = call.x_codes;
        product.out = *call.grad_weight;
        product.dequant_scale = state_number(args.state, kGradY, kFp8StateDequant);
        pass.products[1] = product;
    }
}

Fp8LinearPass backward_pass(const Fp8LinearBackwardArgs& args,
                            const checks::Fp8LinearBackwardCall& call) {
    Fp8LinearPass pass;
    // Without elements nothing is known of grad_y, the forward call left no scales, and gradients
    // are zeros.
    if (call.grad_y.shape[0] != 0 && call.grad_y.shape[1] != 0) {
        const bool codes = args.grad_x || args.grad_weight;
        pass.casts[0] = cast_of(call.grad_y, codes ? &call.grad_codes : nullptr, args.state, kGradY,
                                args.recipe);
        float* const scale = state_at(args.state, kGradY, kFp8StateScale);
        const Tensor& scales = args.saved.scales;
        Fp8UpdateParams& update = pass.update.emplace(update_of(args.recipe));
        update.rows[0] = {state_at(args.state, kGradY, 0),
                          largest_of(checks::backward_format(args.recipe)), nullptr};
        update.products[0] = {state_at(args.state, kWeight, kFp8StateDequant), scale,
                              number_at(scales, 1)};
        update.products[1] = {state_at(args.state, kGradY, kFp8StateDequant), scale,
                              number_at(scales, 0)};
    }
    add_products(pass, args, call);
    if (args.grad_bias) pass.sums = {call.grad_y, *args.grad_bias};
    return pass;
}

Fp8OwnCodes own_codes(const Fp8LinearArgs& args, checks::Fp8LinearCall& call) {
    if (args.saved || is_empty(call)) return {};
    return {&call.x_codes, &call.weight_codes};
}

Fp8OwnCodes own_codes(const Fp8LinearBackwardArgs& args, checks::Fp8LinearBackwardCall& call) {
    if (!args.grad_x && !args.grad_weight) return {};
    return {&call.grad_codes};
}

}  // namespace

int fp8_state_columns(const Fp8Recipe& recipe) {
    checks::check(recipe);
    return kFp8StateHistory + (recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history);
}

void fp8_state_reset(const Tensor& state, Stream stream) {
    checks::check_state(state);
    if (state.device.type == DeviceType::cpu) {
        std::fill_n(static_cast<float*>(state.data), state.elements(), 0.0f);
        return;
    }
    const runtime::BorrowedThread thread;
    enter_device(state.device);
    const auto bytes = static_cast<std::size_t>(state.elements()) * sizeof(float);
    runtime::check(
        runtime::driver().cuMemsetD8Async(std::bit_cast<CUdeviceptr>(state.data), 0, bytes, stream),
        "clearing a state");
}

std::size_t workspace_bytes(const Fp8LinearArgs& args) {
    checks::Fp8LinearCall call = checks::check(args, checks::Data::absent);
    const Fp8OwnCodes own = own_codes(args, call);
    return workspace_bytes(forward_pass(args, call), own, args.x.device);
}

std::size_t workspace_bytes(const Fp8LinearBackwardArgs& args) {
    checks::Fp8LinearBackwardCall call = checks::check(args, checks::Data::absent);
    const Fp8OwnCodes own = own_codes(args, call);
    return workspace_bytes(backward_pass(args, call), own, args.grad_y.device);
}

ExplainedLaunches explain(const Fp8LinearArgs& args, std::string_view arch) {
    checks::Fp8LinearCall call = checks::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, args.x.device);
    const Fp8OwnCodes own = own_codes(args, call);
    return explain(forward_pass(args, call), own, facts);
}

ExplainedLaunches explain(const Fp8LinearBackwardArgs& args, std::string_view arch) {
    checks::Fp8LinearBackwardCall call = checks::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, args.grad_y.device);
    const Fp8OwnCodes own = own_codes(args, call);
    return explain(backward_pass(args, call), own, facts);
}

void fp8_linear(const Fp8LinearArgs& args, Stream stream) {
    const StartedCall started;
    checks::Fp8LinearCall call = checks::check(args);
    if (is_empty(call) && !args.saved) return;
    run_pass([&] { return forward_pass(args, call); }, own_codes(args, call), args.workspace,
             args.x.device, stream);
}

void fp8_linear_backward(const Fp8LinearBackwardArgs& args, Stream stream) {
    const StartedCall started;
    checks::Fp8LinearBackwardCall call = checks::check(args);
    run_pass([&] { return backward_pass(args, call); }, own_codes(args, call), args.workspace,
             args.grad_y.device, stream);
}

}  // namespace jitney
