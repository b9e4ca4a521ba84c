#include "operations/fp8_linear/pass.hpp"

#include <cmath>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/state.h"
#include "operations/check.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/tensor_checks.hpp"

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

Tensor matrix(const char* name, const Tensor& tensor) {
    return checks::as_matrix({name, tensor, ""});
}

// Codes that a call keeps for itself, one behind the other, their rows at multiples of 16 bytes.
class OwnCodes {
  public:
    explicit OwnCodes(void* memory) noexcept : next_(static_cast<std::byte*>(memory)) {}

    Tensor take(const Tensor& matrix, DType format) {
        const std::int64_t stride = (matrix.shape[1] + 15) / 16 * 16;
        const Tensor codes = Tensor::strided(next_, format, {matrix.shape[0], matrix.shape[1]},
                                             {stride, 1}, matrix.device);
        advance(static_cast<std::size_t>(matrix.shape[0] * stride));
        return codes;
    }
    // fp32 [rows, cols], column by column, as products read them fastest.
    Tensor take_scales(std::int64_t rows, std::int64_t cols, const Device& device) {
        const Tensor scales = Tensor::strided(next_, DType::fp32, {rows, cols}, {1, rows}, device);
        advance(static_cast<std::size_t>(rows * cols) * sizeof(float));
        return scales;
    }
    std::size_t bytes() const noexcept { return bytes_; }

  private:
    void advance(std::size_t taken) noexcept {
        if (next_ != nullptr) next_ += taken;
        bytes_ += taken;
    }

    std::byte* next_;
    std::size_t bytes_ = 0;
};

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

// The products of a backward pass. Each is corrected by a number of its own.
void add_products(Fp8LinearPass& pass, const Fp8LinearBackwardArgs& args,
                  const Tensor& grad_codes) {
    Fp8GemmArgs product;
    product.a = grad_codes;
    product.fast_accum = args.fast_accum;
    if (args.grad_x) {
        product.b = args.saved.weight_codes;
        product.out = matrix("grad_x", *args.grad_x);
        product.dequant_scale = state_number(args.state, kWeight, kFp8StateDequant);
        pass.products[0] = product;
    }
    if (args.grad_weight) {
        product.trans_a = true;
        product.b = matrix("saved.x_codes", args.saved.x_codes);
        product.out = *args.grad_weight;
        product.dequant_scale = state_number(args.state, kGradY, kFp8StateDequant);
        pass.products[1] = product;
    }
}

}  // namespace

Fp8LinearPass pass_of(const Fp8LinearArgs& args, void* memory) {
    if (args.y.elements() == 0) return empty_pass(args);
    Fp8LinearPass pass;
    const Tensor x = matrix("x", args.x);
    const DType format = checks::forward_format(args.recipe);
    OwnCodes own(memory);
    const Tensor x_codes =
        args.saved ? matrix("saved.x_codes", args.saved->x_codes) : own.take(x, format);
    const Tensor weight_codes =
        args.saved ? args.saved->weight_codes : own.take(args.weight, format);
    pass.code_bytes = own.bytes();
    pass.casts = {cast_of(x, &x_codes, args.state, kX, args.recipe),
                  cast_of(args.weight, &weight_codes, args.state, kWeight, args.recipe)};

    const auto scale = [&](int index) {
        return args.saved ? number_at(args.saved->scales, index) : nullptr;
    };
    const float largest = largest_of(format);
    Fp8UpdateParams& update = pass.update.emplace(update_of(args.recipe));
    update.rows[0] = {state_at(args.state, kX, 0), largest, scale(0)};
    update.rows[1] = {state_at(args.state, kWeight, 0), largest, scale(1)};
    update.products[0] = {state_at(args.state, kX, kFp8StateDequant),
                          state_at(args.state, kX, kFp8StateScale),
                          state_at(args.state, kWeight, kFp8StateScale)};

    Fp8GemmArgs& product = pass.products[0].emplace();
    product.a = x_codes;
    product.b = weight_codes;
    product.trans_b = true;
    product.out = matrix("y", args.y);
    product.dequant_scale = state_number(args.state, kX, kFp8StateDequant);
    product.bias = args.bias;
    product.fast_accum = args.fast_accum;
    return pass;
}

Fp8LinearPass pass_of(const Fp8LinearBackwardArgs& args, void* memory) {
    Fp8LinearPass pass;
    const Tensor grad_y = matrix("grad_y", args.grad_y);
    Tensor codes;
    if (args.grad_x || args.grad_weight) {
        OwnCodes own(memory);
        codes = own.take(grad_y, checks::backward_format(args.recipe));
        pass.code_bytes = own.bytes();
        add_products(pass, args, codes);
    }
    // Without elements nothing is known of grad_y, the forward call left no scales, and gradients
    // are zeros.
    if (grad_y.elements() != 0) {
        const bool cast_codes = args.grad_x || args.grad_weight;
        pass.casts[0] =
            cast_of(grad_y, cast_codes ? &codes : nullptr, args.state, kGradY, args.recipe);
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
    if (args.grad_bias && grad_y.shape[1] != 0) pass.sums = {grad_y, *args.grad_bias};
    return pass;
}

namespace {

// One number for each row and each block of columns.
Tensor repeated(const Tensor& number, std::int64_t rows, std::int64_t blocks) {
    return Tensor::strided(number.data, DType::fp32, {rows, blocks}, {0, 0}, number.device);
}

// What a product takes as scale_b.
Tensor product_scale(const Tensor& weight_scale, bool blocks) {
    Tensor scale = weight_scale;
    if (!blocks && scale.ndim == 2) scale.ndim = 1;  // [out_features, 1]
    return scale;
}

}  // namespace

Fp8LinearPass pass_of(const Fp8LinearInferenceArgs& args, void* memory) {
    Fp8LinearPass pass;
    if (args.y.elements() == 0) return pass;
    const Tensor x = matrix("x", args.x);
    const std::int64_t rows = x.shape[0];
    const bool blocks = checks::has_blocks(args);
    const std::int64_t across = ceil_div(x.shape[1], std::int64_t{kFp8ScaleCols});
    OwnCodes own(memory);
    Fp8LinearCast& cast = pass.casts[0].emplace();
    cast.args.x = x;
    cast.args.out = own.take(x, DType::fp8_e4m3);

    Fp8GemmArgs& product = pass.products[0].emplace();
    product.a = *cast.args.out;
    product.b = args.weight;
    product.trans_b = true;
    product.out = matrix("y", args.y);
    product.bias = args.bias;
    product.fast_accum = args.fast_accum;
    product.scale_b = product_scale(args.weight_scale, blocks);
    if (args.x_scale) {
        cast.args.multiplier = args.x_scale;
        cast.by_scale = true;
        product.scale_a = blocks ? repeated(*args.x_scale, rows, across) : args.x_scale;
    } else {
        cast.args.dynamic = true;
        cast.args.granularity = blocks ? Fp8Granularity::group : Fp8Granularity::row;
        Tensor scales = own.take_scales(rows, blocks ? across : 1, x.device);
        if (!blocks) scales.ndim = 1;
        cast.args.scale = product.scale_a = scales;
    }
    pass.code_bytes = own.bytes();
    return pass;
}

policy::Fp8LinearProblem problem_of(const Fp8LinearPass& pass) {
    constexpr auto absent = checks::Data::absent;
    policy::Fp8LinearProblem problem;
    for (std::size_t i = 0; i < pass.casts.size(); ++i) {
        if (!pass.casts[i]) continue;
        if (pass.casts[i]->is_empty()) {
            problem.casts_nothing = true;
        } else {
            problem.casts[i] = checks::check(pass.casts[i]->args, absent);
        }
    }
    problem.updates = pass.update.has_value();
    if (pass.sums) {
        policy::ColumnSumsProblem& sums = problem.sums.emplace();
        sums.format = static_cast<int>(pass.sums->x.dtype);
        sums.out = static_cast<int>(pass.sums->out.dtype);
        sums.rows = pass.sums->x.shape[0];
        sums.cols = static_cast<int>(pass.sums->x.shape[1]);
        sums.aligned = checks::is_aligned(pass.sums->x);
    }
    for (std::size_t i = 0; i < pass.products.size(); ++i) {
        if (!pass.products[i]) continue;
        const policy::Fp8GemmProblem product = checks::check(*pass.products[i], absent);
        if (!has_no_rows(product)) problem.products[i] = product;
    }
    problem.code_bytes = pass.code_bytes;
    return problem;
}

}  // namespace jitney
