#include "operations/fp8_linear/launches.hpp"
#include "kernel_sources/fp8/column_sums_params.h"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney {
policy::ColumnSumsProblem sums_problem(const Tensor& x, const Tensor& out) {
    policy::ColumnSumsProblem problem;
    problem.format = static_cast<int>(x.dtype);
    problem.out = static_cast<int>(out.dtype);
    problem.rows = x.shape[0];
    problem.cols = static_cast<int>(x.shape[1]);
    return problem;
}
Fp8UpdateLaunch::Fp8UpdateLaunch(const Device& where, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(where);
    choice_ = policy::choose_fp8_update(facts_of(device));
    kernel_ = &load_kernel(choice_.spec, device, stream);
}

void Fp8UpdateLaunch::run(const Fp8UpdateParams& params, Stream stream) const {
    Fp8UpdateParams own = params;
    launch_kernel(*kernel_, choice_.geometry, &own, stream);
}

ScratchBytes needed(const Tensor& x, const Tensor& sums, const policy::DeviceFacts& facts) {
    if (sums.shape[0] == 0) return {};
    return bytes_of(policy::choose_column_sums(sums_problem(x, sums), facts));
}

ColumnSumsLaunch::ColumnSumsLaunch(const Tensor& x, const Tensor& out, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(x.device);
    if (out.shape[0] == 0) return;
    choice_ = policy::choose_column_sums(sums_problem(x, out), facts_of(device));
    kernel_ = &load_kernel(choice_.spec, device, stream);
}

void ColumnSumsLaunch::run(const Tensor& x, const Tensor& out, const Scratch& scratch,
                           Stream stream) const {
    if (kernel_ == nullptr) return;
    ColumnSumsParams params{};
    params.x = x.data;
    params.out = out.data;
    params.x_stride = x.strides[0];
    params.rows = x.shape[0];
    params.rows_a_split = choice_.rows_a_split;
    params.cols = static_cast<int>(x.shape[1]);
    params.column_blocks = choice_.column_blocks;
    params.splits = choice_.splits;
    params.wide = checks::is_aligned(x) ? 1 : 0;
    params.parts = static_cast<float*>(scratch.data);
    params.arrived = static_cast<unsigned*>(scratch.counters);
    launch_kernel(*kernel_, choice_.geometry, &params, stream);
    note_ran(choice_.spec);
}

}  // namespace jitney
