#include "api/fp8_linear_steps.hpp"

#include "api/kernel_launch.hpp"
#include "api/tensor_checks.hpp"
#include "kernel_sources/fp8/column_sums_params.h"
#include "policy/column_sums.hpp"
#include "policy/fp8_update.hpp"
#include "reference/fp8_linear.hpp"
#include "runtime/workspace.hpp"

namespace jitney {

void fp8_update(const Fp8UpdateParams& params, const Device& device, Stream stream) {
    if (device.type == DeviceType::cpu) return reference::fp8_update(params);
    const runtime::DeviceInfo& info = enter_device(device);
    const policy::Fp8UpdateChoice choice = policy::choose_fp8_update(facts_of(info));
    const runtime::Kernel& kernel = load_kernel(choice.spec, info, stream);
    Fp8UpdateParams own = params;
    launch_kernel(kernel, choice.geometry, &own, stream);
}

void column_sums(const Tensor& x, const Tensor& out, Stream stream) {
    if (out.shape[0] == 0) return;
    if (x.device.type == DeviceType::cpu) return reference::column_sums(x, out);
    const runtime::DeviceInfo& info = enter_device(x.device);
    policy::ColumnSumsProblem problem;
    problem.format = static_cast<int>(x.dtype);
    problem.out = static_cast<int>(out.dtype);
    problem.rows = x.shape[0];
    problem.cols = static_cast<int>(x.shape[1]);
    const policy::ColumnSumsChoice choice = policy::choose_column_sums(problem, facts_of(info));
    const runtime::Kernel& kernel = load_kernel(choice.spec, info, stream);
    const runtime::Workspace workspace =
        runtime::take_workspace(stream, choice.part_bytes, choice.counter_bytes);
    ColumnSumsParams params{};
    params.x = x.data;
    params.out = out.data;
    params.x_stride = x.strides[0];
    params.rows = problem.rows;
    params.rows_a_split = choice.rows_a_split;
    params.cols = problem.cols;
    params.column_blocks = choice.column_blocks;
    params.splits = choice.splits;
    params.wide = checks::is_aligned(x) ? 1 : 0;
    params.parts = static_cast<float*>(workspace.data());
    params.arrived = static_cast<unsigned*>(workspace.counters());
    launch_kernel(kernel, choice.geometry, &params, stream);
}

}  // namespace jitney
