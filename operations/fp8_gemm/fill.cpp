#include "operations/fp8_gemm/fill.hpp"

#include "kernel_sources/common/amax.h"
#include "operations/tensor_checks.hpp"

namespace jitney {
namespace {

Fp8GemmOperand operand_of(const Tensor& tensor) noexcept {
    return {static_cast<const unsigned char*>(tensor.data), tensor.strides[0]};
}

}  // namespace

Fp8GemmParams make_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice, void* partials,
                          void* counters) noexcept {
    Fp8GemmParams params{};
    params.a = operand_of(args.a);
    params.b = operand_of(args.b);
    params.scale = static_cast<const float*>(args.dequant_scale.data);
    if (args.bias) {
        params.bias = args.bias->data;
        params.bias_format = static_cast<int>(args.bias->dtype);
    }
    params.out = args.out.data;
    params.out_stride = args.out.strides[0];
    if (args.out_multiplier) {
        params.multiplier = static_cast<const float*>(args.out_multiplier->data);
    }
    if (args.amax) {
        params.amax = static_cast<float*>(args.amax->data);
        params.amax_counters = static_cast<AmaxCounters*>(counters);
        counters = params.amax_counters + 1;
    }
    params.partials = static_cast<float*>(partials);
    params.arrived = static_cast<unsigned*>(counters);
    params.m = static_cast<int>(problem.m);
    params.n = static_cast<int>(problem.n);
    params.k = static_cast<int>(problem.k);
    params.m_tiles = choice.m_tiles;
    params.n_tiles = choice.n_tiles;
    params.group = choice.group;
    params.splits = choice.splits;
    params.split_tiles = choice.split_tiles;
    params.out_vectors = checks::is_aligned(args.out) ? 1 : 0;
    return params;
}

}  // namespace jitney
