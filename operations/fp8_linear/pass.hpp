// What a forward or backward call of a linear layer comes to: casts, the update of the state, sums
// and products, as arguments of their own.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "kernel_sources/fp8/update_params.h"
#include "operations/fp8_linear/choose.hpp"

namespace jitney {

// A cast, and the row of the state that it goes by where scaling is delayed; null: none.
struct Fp8LinearCast {
    Fp8QuantizeArgs args;
    float* state = nullptr;
    bool by_scale = false;  // the multiplier is 1 / the number that args have for it

    bool is_empty() const noexcept { return args.x.elements() == 0; }
};

struct Fp8LinearPass {
    std::array<std::optional<Fp8LinearCast>, 2> casts;
    std::optional<Fp8UpdateParams> update;
    struct ColumnSums {
        Tensor x;    // [rows, cols]
        Tensor out;  // [cols], at least 1
    };
    std::optional<ColumnSums> sums;
    std::array<std::optional<Fp8GemmArgs>, 2> products;
    std::size_t code_bytes = 0;  // of codes that are in memory of the call's own
};

// Of checked arguments. `codes`: the call's own memory, aligned to 16 bytes; null: not known.
Fp8LinearPass pass_of(const Fp8LinearArgs& args, void* codes);
Fp8LinearPass pass_of(const Fp8LinearBackwardArgs& args, void* codes);
// Its codes have their scales behind them.
Fp8LinearPass pass_of(const Fp8LinearInferenceArgs& args, void* codes);

policy::Fp8LinearProblem problem_of(const Fp8LinearPass& pass);

}  // namespace jitney
