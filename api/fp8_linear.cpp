#include "jitney/fp8_linear.hpp"

#include <bit>
#include <cmath>

#include "api/check_fp8_linear.hpp"
#include "api/fp8_linear_pass.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "runtime/driver.hpp"

namespace jitney {
namespace {

enum Row : int { kX = 0, kWeight = 1, kGradY = 2 };

// Numbers of a state and of the scales that were saved.
float* state_row(const Tensor& state, Row row) {
    return static_cast<float*>(state.data) + row * state.strides[0];
}
Tensor number(float* at, const Tensor& like) {
    return Tensor::contiguous(at, DType::fp32, {1}, like.device);
}
Tensor state_number(const Tensor& state, Row row, Fp8StateColumn column) {
    return number(state_row(state, row) + column, state);
}

float largest_of(DType format) {
    return format == DType::fp8_e4m3 ? kE4m3Largest : kE5m2Largest;
}

// A tensor's cast as its row of the state says. Its amax is noted there.
Fp8QuantizeArgs cast_of(const Tensor& x, const Tensor* codes, const Tensor& state, Row row,
                        const Fp8Recipe& recipe) {
    Fp8QuantizeArgs args;
    args.x = x;
    args.amax = state_number(state, row, kFp8StateAmax);
    if (codes != nullptr) {
        args.out = *codes;
        args.multiplier = state_number(state, row, kFp8StateMultiplier);
        args.dynamic = recipe.scaling == Fp8Scaling::dynamic;
        if (args.dynamic) args.scale = state_number(state, row, kFp8StateScale);
    }
    return args;
}

Fp8UpdateParams update_of(const Fp8Recipe& recipe) {
    Fp8UpdateParams params{};
    params.history = recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history;
    params.latest = recipe.amax == Fp8Amax::latest ? 1 : 0;
    params.margin_power = std::ldexp(1.0f, recipe.margin);
    return params;
}

Fp8LinearPass forward_pass(const Fp8LinearArgs& args, const checks::Fp8LinearCall& call) {
    Fp8LinearPass pass;
    pass.casts = {cast_of(call.x, &call.x_codes, args.state, kX, args.recipe),
                  cast_of(call.weight, &call.weight_codes, args.state, kWeight, args.recipe)};

    float* const x_row = state_row(args.state, kX);
    float* const weight_row = state_row(args.state, kWeight);
    float* const scales = args.saved ? static_cast<float*>(args.saved->scales.data) : nullptr;
    const float largest = largest_of(checks::forward_format(args.recipe));
    Fp8UpdateParams& update = pass.update.emplace(update_of(args.recipe));
    update.rows[0] = {x_row, largest, scales};
    update.rows[1] = {weight_row, largest, scales != nullptr ? scales + 1 : nullptr};
    update.products[0] = {x_row + kFp8StateDequant, x_row + kFp8StateScale,
                          weight_row + kFp8StateScale};

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
    // Without rows nothing is known of grad_y, and its gradients are zeros.
    if (call.grad_y.shape[0] != 0) {
        const bool codes = args.grad_x || args.grad_weight;
        pass.casts[0] = cast_of(call.grad_y, codes ? &call.grad_codes : nullptr, args.state, kGradY,
                                args.recipe);
        float* const row = state_row(args.state, kGradY);
        const auto* const scales = static_cast<const float*>(args.saved.scales.data);
        Fp8UpdateParams& update = pass.update.emplace(update_of(args.recipe));
        update.rows[0] = {row, largest_of(checks::backward_format(args.recipe)), nullptr};
        update.products[0] = {state_row(args.state, kWeight) + kFp8StateDequant,
                              row + kFp8StateScale, scales + 1};
        update.products[1] = {row + kFp8StateDequant, row + kFp8StateScale, scales};
    }
    add_products(pass, args, call);
    if (args.grad_bias) pass.sums = {call.grad_y, *args.grad_bias};
    return pass;
}

void set_pairs_on_gpu(const Tensor& state, Stream stream) {
    enter_device(state.device);
    const runtime::Driver& driver = runtime::driver();
    const auto bytes = static_cast<std::size_t>(state.elements()) * sizeof(float);
    runtime::check(driver.cuMemsetD8Async(std::bit_cast<CUdeviceptr>(state.data), 0, bytes, stream),
                   "clearing a state");
    for (const Row row : {kX, kWeight, kGradY}) {
        runtime::check(driver.cuMemsetD32Async(std::bit_cast<CUdeviceptr>(state_row(state, row)),
                                               std::bit_cast<unsigned>(1.0f), 2, stream),
                       "writing a state's multiplier and scale");
    }
}

}  // namespace

int fp8_state_columns(const Fp8Recipe& recipe) {
    checks::check(recipe);
    return kFp8StateHistory + (recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history);
}

void fp8_state_reset(const Tensor& state, Stream stream) {
    checks::check_state(state);
    static_assert(kFp8StateMultiplier == 0 && kFp8StateScale == 1);
    if (state.device.type == DeviceType::cuda) return set_pairs_on_gpu(state, stream);
    std::fill_n(static_cast<float*>(state.data), state.elements(), 0.0f);
    for (const Row row : {kX, kWeight, kGradY})
        std::fill_n(state_row(state, row), 2, 1.0f);
}

std::size_t fp8_linear_workspace(const Fp8LinearArgs& args) {
    Fp8LinearArgs sizes = args;
    sizes.workspace = nullptr;
    return checks::check(sizes, checks::Data::absent).workspace_bytes;
}

std::size_t fp8_linear_workspace(const Fp8LinearBackwardArgs& args) {
    Fp8LinearBackwardArgs sizes = args;
    sizes.workspace = nullptr;
    return checks::check(sizes, checks::Data::absent).workspace_bytes;
}

void fp8_linear(const Fp8LinearArgs& args, Stream stream) {
    note_nothing_ran();
    checks::Fp8LinearCall call = checks::check(args);
    if (call.y.shape[0] == 0 || call.y.shape[1] == 0) return;
    Fp8OwnCodes own;
    if (!args.saved) own = {{&call.x_codes, &call.weight_codes}, args.workspace};
    run_pass([&] { return forward_pass(args, call); }, own, args.x.device, stream);
}

void fp8_linear_backward(const Fp8LinearBackwardArgs& args, Stream stream) {
    note_nothing_ran();
    checks::Fp8LinearBackwardCall call = checks::check(args);
    Fp8OwnCodes own;
    if (call.workspace_bytes != 0) own = {{&call.grad_codes, nullptr}, args.workspace};
    run_pass([&] { return backward_pass(args, call); }, own, args.grad_y.device, stream);
}

}  // namespace jitney
