#include "operations/fp8_quantize/fill.hpp"

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/scale.h"
#include "operations/tensor_checks.hpp"

namespace jitney {
namespace {

float* number(const std::optional<Tensor>& tensor) noexcept {
    return tensor ? static_cast<float*>(tensor->data) : nullptr;
}

unsigned char* codes(const std::optional<Tensor>& tensor) noexcept {
    return tensor ? static_cast<unsigned char*>(tensor->data) : nullptr;
}

float largest_of(DType codes) noexcept {
    return codes == DType::fp8_e4m3 ? kE4m3Largest : kE5m2Largest;
}

}  // namespace

Fp8QuantizeParams form_params(const Fp8QuantizeArgs& args,
                              const policy::Fp8QuantizeChoice& choice) {
    const policy::Fp8Tiling& tiling = choice.tiling;
    const auto stride = [&tiling](const char* name, const Tensor& tensor) {
        return tiling.recut ? tiling.cols : checks::as_matrix({name, tensor, ""}).strides[0];
    };
    Fp8QuantizeParams params{};
    params.x_stride = stride("x", args.x);
    if (args.out) params.codes_stride = stride("out", *args.out);
    if (args.out_transposed) params.transposed_stride = args.out_transposed->strides[0];
    params.rows = tiling.rows;
    params.cols = tiling.cols;
    params.last_cols = tiling.last_cols;
    params.tiles = tiling.tiles;
    params.tiles_across = tiling.tiles_across;
    params.log2_across = tiling.log2_across;
    params.backwards = tiling.backwards ? 1 : 0;
    params.wide_x = tiling.wide_x ? 1 : 0;
    params.wide_codes = tiling.wide_codes ? 1 : 0;
    params.wide_transposed = tiling.wide_transposed ? 1 : 0;
    const std::optional<Tensor>& out = args.out ? args.out : args.out_transposed;
    params.largest = out ? largest_of(out->dtype) : kE4m3Largest;
    params.power_of_two = args.power_of_two ? 1 : 0;
    return params;
}

void set_addresses(Fp8QuantizeParams& params, const Fp8QuantizeArgs& args,
                   const Fp8Numbers& numbers, void* counters) noexcept {
    params.x = args.x.data;
    params.codes = codes(args.out);
    params.transposed = codes(args.out_transposed);
    params.multiplier = numbers.multiplier;
    params.new_multiplier = numbers.new_multiplier;
    params.scale = numbers.scale;
    params.amax = numbers.amax;
    params.state = numbers.state;
    params.counters = static_cast<AmaxCounters*>(counters);
}

namespace {

// Scales of rows may have a second dimension, of 1.
std::int64_t step_across(const Tensor& scale) noexcept {
    return scale.ndim == 2 ? scale.strides[1] : 0;
}

Fp8ScalesParams form_params(const Fp8QuantizeArgs& args, const policy::Fp8ScalesChoice& choice) {
    const Tensor x = checks::as_matrix({"x", args.x, ""});
    const Tensor out = checks::as_matrix({"out", *args.out, ""});
    Fp8ScalesParams params{};
    params.x_stride = x.strides[0];
    params.codes_stride = out.strides[0];
    params.scales_down = args.scale->strides[0];
    params.scales_across = step_across(*args.scale);
    params.rows = x.shape[0];
    params.cols = x.shape[1];
    params.largest = largest_of(out.dtype);
    params.power_of_two = args.power_of_two ? 1 : 0;
    params.tiles_across = choice.tiles_across;
    params.wide_x = choice.wide_x ? 1 : 0;
    params.wide_codes = choice.wide_codes ? 1 : 0;
    return params;
}

}  // namespace

Fp8CastParams form_params(const Fp8QuantizeArgs& args, const policy::Fp8CastChoice& choice) {
    Fp8CastParams params;
    if (choice.scales) {
        params.scales = form_params(args, *choice.scales);
        return params;
    }
    params.codes = form_params(args, choice.codes);
    if (choice.amax) params.amax = form_params(args, *choice.amax);
    return params;
}

void set_addresses(Fp8CastParams& params, const Fp8QuantizeArgs& args,
                   const policy::Fp8CastChoice& choice, const Scratch& scratch,
                   float* state) noexcept {
    if (choice.scales) {
        params.scales.x = args.x.data;
        params.scales.codes = codes(args.out);
        params.scales.scales = number(args.scale);
        return;
    }
    Fp8Numbers numbers{number(args.multiplier), nullptr, number(args.scale), number(args.amax),
                       state};
    if (!choice.amax) {
        void* const counters = choice.counter_bytes != 0 ? scratch.counters : nullptr;
        return set_addresses(params.codes, args, numbers, counters);
    }
    float* const multiplier =
        choice.multiplier_bytes != 0 ? static_cast<float*>(scratch.data) : number(args.multiplier);
    numbers.multiplier = nullptr;
    numbers.new_multiplier = multiplier;
    set_addresses(params.amax, args, numbers, scratch.counters);
    set_addresses(params.codes, args, {.multiplier = multiplier}, nullptr);
}

}  // namespace jitney
