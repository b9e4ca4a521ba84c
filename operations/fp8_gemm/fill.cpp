#include "operations/fp8_gemm/fill.hpp"

#include "kernel_sources/common/amax.h"
#include "operations/fp8_gemm/tensor_maps.hpp"
#include "runtime/tensor_map.hpp"

namespace jitney {

namespace {

// Along a dimension of the size 1 there is nowhere to go.
long long step_along(const Tensor& scale, int dim) noexcept {
    const auto i = static_cast<std::size_t>(dim);
    return dim >= scale.ndim || scale.shape[i] <= 1 ? 0 : scale.strides[i];
}

// From group to group. One number, or one row, may serve all of them.
long long step_of_groups(const Tensor& tensor, int dims_of_one) noexcept {
    return tensor.ndim > dims_of_one ? step_along(tensor, 0) : 0;
}

void form_groups(Fp8GemmParams& params, const Fp8GemmArgs& args, std::int64_t groups) noexcept {
    params.groups = static_cast<int>(groups);
    params.b_group = args.b.strides[0];
    if (args.bias) params.bias_group = step_of_groups(*args.bias, 1);
    if (args.scale_b) params.scales.b_group = step_of_groups(*args.scale_b, 0);
}

}  // namespace

Fp8GemmParams form_params(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                          const policy::Fp8GemmChoice& choice) noexcept {
    Fp8GemmParams params{};
    params.a.stride = args.a.strides[0];
    const int of_groups = problem.groups > 0 ? 1 : 0;  // dimensions ahead of those of one group
    params.b.stride = args.b.strides[static_cast<std::size_t>(of_groups)];
    params.out_stride = args.out.strides[0];
    if (problem.scales != kOneScale) {
        params.scales.a_row = step_along(*args.scale_a, 0);
        params.scales.a_block = step_along(*args.scale_a, 1);
        params.scales.b_column = step_along(*args.scale_b, of_groups);
        params.scales.b_block = step_along(*args.scale_b, of_groups + 1);
    }
    if (problem.groups > 0) form_groups(params, args, problem.groups);
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
    if (args.dequant_scale) {
        params.scale = static_cast<const float*>(args.dequant_scale->data);
    } else {
        params.scales.a = static_cast<const float*>(args.scale_a->data);
        params.scales.b = static_cast<const float*>(args.scale_b->data);
    }
    if (args.bias) params.bias = args.bias->data;
    if (args.group_indptr) params.group_indptr = static_cast<const int*>(args.group_indptr->data);
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

Fp8GemmLaunchParams form_launch(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                                const policy::Fp8GemmChoice& choice) {
    Fp8GemmLaunchParams params;
    params.wgmma.gemm = form_params(args, problem, choice);
    params.is_wgmma = choice.spec.kernel == policy::KernelId::fp8_gemm_wgmma;
    if (params.is_wgmma) {
        params.addresses_lead = runtime::addresses_lead_maps();
        form_maps(params.wgmma, args, choice);
    }
    return params;
}

void set_addresses(Fp8GemmLaunchParams& params, const Fp8GemmArgs& args,
                   const policy::Fp8GemmChoice& choice, void* partials, void* counters) {
    set_addresses(params.wgmma.gemm, args, choice, partials, counters);
    if (params.is_wgmma) set_map_addresses(params.wgmma, args, choice, params.addresses_lead);
}

}  // namespace jitney
