#include "operations/gated_activation/fill.hpp"

#include "operations/row_results.hpp"

namespace jitney {

using checks::row_stride;

GatedActivationParams form_params(const GatedActivationArgs& args,
                                  const policy::GatedActivationProblem& problem,
                                  const policy::GatedActivationChoice& choice) noexcept {
    GatedActivationParams params{};
    params.gate_stride = row_stride(args.gate);
    params.up_stride = args.up ? row_stride(*args.up) : params.gate_stride;
    params.out_stride = row_stride(args.out);
    params.rows = problem.rows;
    params.d = problem.d;
    params.pieces = choice.pieces;
    return params;
}

void set_addresses(GatedActivationParams& params, const GatedActivationArgs& args) noexcept {
    params.gate = args.gate.data;
    params.up = args.up ? args.up->data
                        : static_cast<const std::byte*>(args.gate.data) +
                              params.d * size_of(args.gate.dtype);
    params.out = args.out.data;
    params.multiplier = static_cast<const float*>(address_of(args.multiplier));
    params.scale = static_cast<float*>(address_of(args.scale));
}

}  // namespace jitney
