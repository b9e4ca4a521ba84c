#include "operations/fp8_gemm/fill.hpp"

#include "kernel_sources/common/amax.h"

namespace jitney {

Fp8GemmParams form_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice) noexcept {
    Fp8GemmParams params{};
    params.a.stride = args.a.strides[0];
    params.b.stride = args.b.strides[0];
    params.out_stride = args.out.strides[0];
    if (args.bias) params.bias_format = static_cast<int>(args.bias->dtype);
    params.m = static_cast<int>(problem.m);
    params.n = static_cast<int>(problem.n);
    params.k = static_cast<int>(problem.k);
    params.m_tiles = choice.m_tiles;
    params.n_tiles = choice.n_tiles;
    params.group = choice.group;
    params.splits = choice.splits;
    params.split_tiles = choice.split_tiles;
    params.out_vectors = problem.out_aligned ? 1 : 0;
    return params;
}

void set_addresses(Fp8GemmParams& params, const Fp8GemmArgs& args,
                   const policy::Fp8GemmChoice& choice, void* partials, void* counters) noexcept {
    params.a.data = static_cast<const unsigned char*>(args.a.data);
    params.b.data = static_cast<const unsigned char*>(args.b.data);
    params.scale = static_cast<const float*>(args.dequant_scale.data);
    if (args.bias) params.bias = args.bias->data;
    params.out = args.out.data;
    if (args.out_multiplier) {
        params.multiplier = static_cast<const float*>(args.out_multiplier->data);
    }
    if (args.amax) {
        params.amax = static_cast<float*>(args.amax->data);
        params.amax_counters = static_cast<AmaxCounters*>(counters);
        counters = params.amax_counters + 1;
    }
    params.partials = choice.workspace.partial_bytes != 0 ? static_cast<float*>(partials) : nullptr;
    params.arrived = static_cast<unsigned*>(counters);
}

}  // namespace jitney
