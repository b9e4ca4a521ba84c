#include "operations/rms_norm/fill.hpp"

#include "operations/row_results.hpp"

namespace jitney {

using checks::row_stride;

RmsNormParams form_params(const RmsNormArgs& args, const policy::RmsNormProblem& problem) noexcept {
    RmsNormParams params{};
    params.x_stride = row_stride(args.x);
    if (args.residual) {
        params.residual_stride = row_stride(*args.residual);
        params.sum_stride = row_stride(*args.sum);
    }
    params.out_stride = row_stride(args.out);
    params.rows = problem.rows;
    params.d = problem.d;
    params.eps = args.eps.value_or(kDefaultNormEps);
    return params;
}

void set_addresses(RmsNormParams& params, const RmsNormArgs& args) noexcept {
    params.x = args.x.data;
    params.residual = address_of(args.residual);
    params.sum = address_of(args.sum);
    params.out = args.out.data;
    params.weight = address_of(args.weight);
    params.bias = address_of(args.bias);
    params.multiplier = static_cast<const float*>(address_of(args.multiplier));
    params.scale = static_cast<float*>(address_of(args.scale));
}

}  // namespace jitney
