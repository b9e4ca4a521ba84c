#include "operations/fp8_linear/fill.hpp"

namespace jitney {
namespace {

ColumnSumsParams form_params(const policy::ColumnSumsProblem& problem,
                             const policy::ColumnSumsChoice& choice, const Tensor& x) noexcept {
    ColumnSumsParams params{};
    params.x_stride = x.strides[0];
    params.rows = problem.rows;
    params.rows_a_split = choice.rows_a_split;
    params.cols = problem.cols;
    params.column_blocks = choice.column_blocks;
    params.splits = choice.splits;
    params.wide = problem.aligned ? 1 : 0;
    return params;
}

}  // namespace

Fp8LinearParams form_params(const Fp8LinearPass& pass, const policy::Fp8LinearProblem& problem,
                            const policy::Fp8LinearChoice& choice) {
    Fp8LinearParams params;
    for (std::size_t i = 0; i < choice.casts.size(); ++i) {
        if (!choice.casts[i]) continue;
        params.casts[i] = form_params(pass.casts[i]->args, *choice.casts[i]);
        params.casts[i].codes.by_scale = pass.casts[i]->by_scale ? 1 : 0;
    }
    if (choice.sums) params.sums = form_params(*problem.sums, *choice.sums, pass.sums->x);
    for (std::size_t i = 0; i < choice.products.size(); ++i) {
        if (!choice.products[i]) continue;
        params.products[i] =
            form_launch(*pass.products[i], *problem.products[i], *choice.products[i]);
    }
    std::size_t step = 0;
    for_each_launch(choice, params, [&](const auto&, const auto&, int, const auto&, auto& part) {
        const auto place =
            reinterpret_cast<const std::byte*>(&part) - reinterpret_cast<const std::byte*>(&params);
        params.places[step++] = static_cast<std::uint16_t>(place);
    });
    return params;
}

void set_addresses(Fp8LinearParams& params, const Fp8LinearPass& pass,
                   const policy::Fp8LinearChoice& choice, const Scratch& scratch) {
    for (std::size_t i = 0; i < choice.casts.size(); ++i) {
        if (!choice.casts[i]) continue;
        set_addresses(params.casts[i], pass.casts[i]->args, *choice.casts[i], scratch,
                      pass.casts[i]->state);
    }
    if (choice.update) params.update = *pass.update;
    if (choice.sums) {
        params.sums.x = pass.sums->x.data;
        params.sums.out = pass.sums->out.data;
        params.sums.parts = static_cast<float*>(scratch.data);
        params.sums.arrived = static_cast<unsigned*>(scratch.counters);
    }
    for (std::size_t i = 0; i < choice.products.size(); ++i) {
        if (!choice.products[i]) continue;
        set_addresses(params.products[i], *pass.products[i], *choice.products[i], scratch.data,
                      scratch.counters);
    }
}

}  // namespace jitney
