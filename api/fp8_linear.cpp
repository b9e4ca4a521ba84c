#include "jitney/fp8_linear.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "api/check_fp8_linear.hpp"
#include "api/fp8_linear_steps.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_quantize.hpp"
#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "runtime/driver.hpp"
#include "runtime/workspace.hpp"

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

// Memory for codes while the call puts its work into the stream: the caller's, the runtime's, or
// the host's.
class Scratch {
  public:
    Scratch(void* given, std::size_t bytes, const Device& device, Stream stream) : at_(given) {
        if (given != nullptr || bytes == 0) return;
        if (device.type == DeviceType::cpu) {
            host_.resize(bytes);
            at_ = host_.data();
        } else {
            enter_device(device);
            workspace_ = runtime::take_workspace(stream, bytes);
            at_ = workspace_.data();
        }
    }

    // The next piece of it.
    void give(Tensor& codes) {
        codes.data = at_;
        at_ = static_cast<std::byte*>(at_) + codes.shape[0] * codes.strides[0];
    }

  private:
    std::vector<std::byte> host_;
    runtime::Workspace workspace_;
    void* at_;
};

// Casts a tensor as its row of the state says, and notes its amax there.
void quantize(const Tensor& x, const Tensor* codes, const Tensor& state, Row row,
              const Fp8Recipe& recipe, Stream stream) {
    Fp8QuantizeArgs args;
    args.x = x;
    args.amax = state_number(state, row, kFp8StateAmax);
    if (codes != nullptr) {
        args.out = *codes;
        args.multiplier = state_number(state, row, kFp8StateMultiplier);
        args.dynamic = recipe.scaling == Fp8Scaling::dynamic;
        if (args.dynamic) args.scale = state_number(state, row, kFp8StateScale);
    }
    fp8_quantize(args, stream);
}

Fp8UpdateParams update_of(const Fp8Recipe& recipe) {
    Fp8UpdateParams params{};
    params.history = recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history;
    params.latest = recipe.amax == Fp8Amax::latest ? 1 : 0;
    params.margin_power = std::ldexp(1.0f, recipe.margin);
    return params;
}

void run_forward(const Fp8LinearArgs& args, checks::Fp8LinearCall& call, Stream stream) {
    Scratch scratch(args.workspace, call.workspace_bytes, args.x.device, stream);
    if (!args.saved) {
        scratch.give(call.x_codes);
        scratch.give(call.weight_codes);
    }
    quantize(call.x, &call.x_codes, args.state, kX, args.recipe, stream);
    quantize(call.weight, &call.weight_codes, args.state, kWeight, args.recipe, stream);

    float* const x_row = state_row(args.state, kX);
    float* const weight_row = state_row(args.state, kWeight);
    float* const scales = args.saved ? static_cast<float*>(args.saved->scales.data) : nullptr;
    const float largest = largest_of(checks::forward_format(args.recipe));
    Fp8UpdateParams update = update_of(args.recipe);
    update.rows[0] = {x_row, largest, scales};
    update.rows[1] = {weight_row, largest, scales != nullptr ? scales + 1 : nullptr};
    update.products[0] = {x_row + kFp8StateDequant, x_row + kFp8StateScale,
                          weight_row + kFp8StateScale};
    fp8_update(update, args.x.device, stream);

    Fp8GemmArgs product;
    product.a = call.x_codes;
    product.b = call.weight_codes;
    product.trans_b = true;
    product.out = call.y;
    product.dequant_scale = state_number(args.state, kX, kFp8StateDequant);
    product.bias = args.bias;
    product.fast_accum = args.fast_accum;
    fp8_gemm(product, stream);
}

// The products of a backward pass. Each is corrected by a number of its own.
void multiply(const Fp8LinearBackwardArgs& args, const checks::Fp8LinearBackwardCall& call,
              Stream stream) {
    Fp8GemmArgs product;
    product.a = call.grad_codes;
    product.fast_accum = args.fast_accum;
    if (call.grad_x) {
        product.b = call.weight_codes;
        product.out = *call.grad_x;
        product.dequant_scale = state_number(args.state, kWeight, kFp8StateDequant);
        fp8_gemm(product, stream);
    }
    if (call.grad_weight) {
        product.trans_a = true;
        product.b = call.x_codes;
        product.out = *call.grad_weight;
        product.dequant_scale = state_number(args.state, kGradY, kFp8StateDequant);
        fp8_gemm(product, stream);
    }
}

void run_backward(const Fp8LinearBackwardArgs& args, checks::Fp8LinearBackwardCall& call,
                  Stream stream) {
    Scratch scratch(args.workspace, call.workspace_bytes, args.grad_y.device, stream);
    if (call.workspace_bytes != 0) scratch.give(call.grad_codes);
    // Without rows nothing is known of grad_y, and its gradients are zeros.
    if (call.grad_y.shape[0] != 0) {
        const bool codes = args.grad_x || args.grad_weight;
        quantize(call.grad_y, codes ? &call.grad_codes : nullptr, args.state, kGradY, args.recipe,
                 stream);
        float* const row = state_row(args.state, kGradY);
        const auto* const scales = static_cast<const float*>(args.saved.scales.data);
        Fp8UpdateParams update = update_of(args.recipe);
        update.rows[0] = {row, largest_of(checks::backward_format(args.recipe)), nullptr};
        update.products[0] = {state_row(args.state, kWeight) + kFp8StateDequant,
                              row + kFp8StateScale, scales + 1};
        update.products[1] = {row + kFp8StateDequant, row + kFp8StateScale, scales};
        fp8_update(update, args.grad_y.device, stream);
    }
    multiply(args, call, stream);
    if (args.grad_bias) column_sums(call.grad_y, *args.grad_bias, stream);
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
    run_forward(args, call, stream);
}

void fp8_linear_backward(const Fp8LinearBackwardArgs& args, Stream stream) {
    note_nothing_ran();
    checks::Fp8LinearBackwardCall call = checks::check(args);
    run_backward(args, call, stream);
}

}  // namespace jitney
