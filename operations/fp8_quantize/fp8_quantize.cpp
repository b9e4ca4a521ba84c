#include "jitney/fp8_quantize.hpp"

#include "operations/fp8_quantize/operation.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"

namespace jitney {

void quantize_on_host(const Fp8QuantizeArgs& args, float* state, bool by_scale) {
    reference::Fp8Quantize call;
    call.x = checks::as_matrix({"x", args.x, ""});
    if (args.out) call.out = checks::as_matrix({"out", *args.out, ""});
    call.out_transposed = args.out_transposed;
    call.multiplier = args.multiplier;
    call.scale = args.scale;
    call.amax = args.amax;
    call.dynamic = args.dynamic;
    call.granularity = static_cast<reference::Fp8Granularity>(args.granularity);
    call.power_of_two = args.power_of_two;
    call.state = state;
    call.by_scale = by_scale;
    reference::fp8_quantize(call);
}

void fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    const auto granularity = static_cast<int>(args.granularity);
    path::run_kernel(args, policy::fp8_quantize_kernel(granularity), "ops::fp8_quantize", stream);
}

std::size_t workspace_bytes(const Fp8QuantizeArgs& args) {
    return path::workspace_bytes(args);
}

Explanation explain(const Fp8QuantizeArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<Fp8QuantizeArgs>;

}  // namespace jitney
