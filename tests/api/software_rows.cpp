// Norms and gated activations.
#include <stdexcept>

#include "operations/gated_activation/reference.hpp"
#include "operations/rms_norm/reference.hpp"
#include "tests/api/software_launches.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

// A row has room in what its threads hold, where they hold any.
void check_room(std::string_view image, int d) {
    const int held = constant(image, "vectors");
    const int width = constant(image, "width");
    if (d % width != 0) throw std::logic_error("vectors that end behind their row");
    if (held != 0 && d > held * width * constant(image, "threads")) {
        throw std::logic_error("more elements than the threads of a row hold");
    }
}

Tensor rows_of(const void* data, DType dtype, std::int64_t rows, std::int64_t d,
               std::int64_t stride) {
    return tensor_of(data, dtype, {rows, d}, {stride, 1});
}

struct Results {
    Tensor out;
    std::optional<Tensor> multiplier;
    std::optional<Tensor> scale;
};

template <class Params>
Results results_of(std::string_view image, const Params& p) {
    const int result = constant(image, "result");
    const DType dtype =
        result == kPlainResult ? static_cast<DType>(constant(image, "format")) : DType::fp8_e4m3;
    Results results{rows_of(p.out, dtype, p.rows, p.d, p.out_stride), std::nullopt, std::nullopt};
    if (result == kScaledCodes) results.multiplier = number_of(p.multiplier);
    if (result == kRowScaledCodes) {
        results.scale = tensor_of(p.scale, DType::fp32, {p.rows}, {1});
    }
    return results;
}

}  // namespace

void run_rms_norm(std::string_view image, const RmsNormParams& p) {
    check_room(image, p.d);
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const auto rows = [&](const void* data, std::int64_t stride) {
        return rows_of(data, dtype, p.rows, p.d, stride);
    };
    const Results results = results_of(image, p);
    reference::RmsNorm call;
    call.x = rows(p.x, p.x_stride);
    if (constant(image, "residual") != 0) {
        call.residual = rows(p.residual, p.residual_stride);
        call.sum = rows(p.sum, p.sum_stride);
    }
    const int weight = constant(image, "weight");
    if (weight != kNoWeight) {
        const auto weight_dtype = static_cast<DType>(weight);
        call.weight = tensor_of(p.weight, weight_dtype, {p.d}, {1});
        if (constant(image, "bias") != 0) call.bias = tensor_of(p.bias, weight_dtype, {p.d}, {1});
    }
    call.out = results.out;
    call.multiplier = results.multiplier;
    call.scale = results.scale;
    call.eps = static_cast<double>(p.eps);
    call.one_plus_weight = constant(image, "one_plus") != 0;
    call.subtract_mean = constant(image, "center") != 0;
    reference::rms_norm(call);
}

void run_gated_activation(std::string_view image, const GatedActivationParams& p) {
    if (p.pieces == 1) {
        check_room(image, p.d);
    } else if (constant(image, "result") == kRowScaledCodes) {
        throw std::logic_error("pieces of a row whose scale is one number");
    }
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const Results results = results_of(image, p);
    reference::GatedActivation call;
    call.gate = rows_of(p.gate, dtype, p.rows, p.d, p.gate_stride);
    call.up = rows_of(p.up, dtype, p.rows, p.d, p.up_stride);
    call.out = results.out;
    call.multiplier = results.multiplier;
    call.scale = results.scale;
    call.activation = static_cast<reference::Activation>(constant(image, "activation"));
    reference::gated_activation(call);
}

}  // namespace jitney::tests
