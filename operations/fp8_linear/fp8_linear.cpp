#include "jitney/fp8_linear.hpp"

#include <algorithm>
#include <bit>

#include "kernel_sources/fp8/state.h"
#include "operations/fp8_gemm/operation.hpp"
#include "operations/fp8_linear/operation.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"
#include "runtime/driver.hpp"

namespace jitney {

void run_on_host(const Fp8LinearPass& pass) {
    for (const auto& cast : pass.casts) {
        // A cast of nothing makes no scale, on a GPU either.
        if (cast) {
            quantize_on_host(cast->args, cast->is_empty() ? nullptr : cast->state, cast->by_scale);
        }
    }
    if (pass.update) reference::fp8_update(*pass.update);
    if (pass.sums) reference::column_sums(pass.sums->x, pass.sums->out);
    for (const auto& product : pass.products) {
        if (product) OperationOf<Fp8GemmArgs>::run_reference(*product);
    }
}

int fp8_state_columns(const Fp8Recipe& recipe) {
    checks::check(recipe);
    return kFp8StateHistory + (recipe.scaling == Fp8Scaling::dynamic ? 0 : recipe.history);
}

void fp8_state_reset(const Tensor& state, Stream stream) {
    checks::check_state(state);
    if (state.device.type == DeviceType::cpu) {
        std::fill_n(static_cast<float*>(state.data), state.elements(), 0.0f);
        return;
    }
    const runtime::BorrowedThread thread;
    enter_device(state.device);
    const auto bytes = static_cast<std::size_t>(state.elements()) * sizeof(float);
    runtime::check(
        runtime::driver().cuMemsetD8Async(std::bit_cast<CUdeviceptr>(state.data), 0, bytes, stream),
        "clearing a state");
}

void fp8_linear(const Fp8LinearArgs& args, Stream stream) {
    path::run(args, stream);
}

void fp8_linear_backward(const Fp8LinearBackwardArgs& args, Stream stream) {
    path::run(args, stream);
}

void fp8_linear_inference(const Fp8LinearInferenceArgs& args, Stream stream) {
    path::run(args, stream);
}

std::size_t workspace_bytes(const Fp8LinearArgs& args) {
    return path::workspace_bytes(args);
}

std::size_t workspace_bytes(const Fp8LinearBackwardArgs& args) {
    return path::workspace_bytes(args);
}

std::size_t workspace_bytes(const Fp8LinearInferenceArgs& args) {
    return path::workspace_bytes(args);
}

ExplainedLaunches explain(const Fp8LinearArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

ExplainedLaunches explain(const Fp8LinearBackwardArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

ExplainedLaunches explain(const Fp8LinearInferenceArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<Fp8LinearArgs>;
template class JITNEY_API Plan<Fp8LinearBackwardArgs>;
template class JITNEY_API Plan<Fp8LinearInferenceArgs>;

}  // namespace jitney
