// The kernels' parameters of a call of a linear layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel_sources/fp8/column_sums_params.h"
#include "kernel_sources/fp8/update_params.h"
#include "operations/fp8_gemm/fill.hpp"
#include "operations/fp8_linear/choose.hpp"
#include "operations/fp8_linear/pass.hpp"
#include "operations/fp8_quantize/fill.hpp"
#include "operations/operation.hpp"

namespace jitney {

// Of every launch, in the order of the choice's steps.
struct Fp8LinearParams {
    std::array<Fp8CastParams, 2> casts{};
    Fp8UpdateParams update{};
    ColumnSumsParams sums{};
    std::array<Fp8GemmLaunchParams, 2> products{};
    // Where the parameters of each step are, in bytes from the first: copies keep them.
    std::array<std::uint16_t, Steps::most> places{};

    void* of(std::size_t step) noexcept {
        return reinterpret_cast<std::byte*>(this) + places[step];
    }
};

// `visit(spec, geometry, splits, scratch, part)` for each launch of the choice; `part` is the
// member of `params`, an Fp8LinearParams, that it is launched with.
template <class Params, class Visit>
void for_each_launch(const policy::Fp8LinearChoice& choice, Params& params, const Visit& visit) {
    for (std::size_t i = 0; i < choice.casts.size(); ++i) {
        if (!choice.casts[i]) continue;
        const policy::Fp8CastChoice& cast = *choice.casts[i];
        if (cast.scales) {
            visit(cast.scales->spec, cast.scales->geometry, 1, ScratchBytes{},
                  params.casts[i].scales);
            continue;
        }
        if (cast.amax) {
            visit(cast.amax->spec, cast.amax->geometry, 1,
                  ScratchBytes{cast.amax->counter_bytes, 0}, params.casts[i].amax);
        }
        visit(cast.codes.spec, cast.codes.geometry, 1, ScratchBytes{cast.codes.counter_bytes, 0},
              params.casts[i].codes);
    }
    if (choice.update)
        visit(choice.update->spec, choice.update->geometry, 1, ScratchBytes{}, params.update);
    if (choice.sums) {
        visit(choice.sums->spec, choice.sums->geometry, choice.sums->splits,
              ScratchBytes{choice.sums->counter_bytes, choice.sums->part_bytes}, params.sums);
    }
    for (std::size_t i = 0; i < choice.products.size(); ++i) {
        if (!choice.products[i]) continue;
        const policy::Fp8GemmChoice& product = *choice.products[i];
        const auto launch = [&](auto& part) {
            visit(product.spec, product.geometry, product.splits,
                  ScratchBytes{product.workspace.counter_bytes, product.workspace.partial_bytes},
                  part);
        };
        if (product.spec.kernel == policy::KernelId::fp8_gemm_wgmma) {
            launch(params.products[i].wgmma);
        } else {
            launch(params.products[i].wgmma.gemm);
        }
    }
}

// All that the form of a checked call decides: no addresses.
Fp8LinearParams form_params(const Fp8LinearPass& pass, const policy::Fp8LinearProblem& problem,
                            const policy::Fp8LinearChoice& choice);
// The rest.
void set_addresses(Fp8LinearParams& params, const Fp8LinearPass& pass,
                   const policy::Fp8LinearChoice& choice, const Scratch& scratch);

}  // namespace jitney
