#include "jitney/fp8_quantize.hpp"

#include <fmt/format.h>

#include <bit>

#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/fp8_quantize_params.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "jitney/error.hpp"
#include "reference/fp8_quantize.hpp"
#include "runtime/driver.hpp"
#include "runtime/workspace.hpp"

namespace jitney {
namespace {

float* number(const std::optional<Tensor>& tensor) {
    return tensor ? static_cast<float*>(tensor->data) : nullptr;
}

void launch(const checks::Fp8QuantizeCall& call, const policy::Fp8QuantizeChoice& choice,
            const Fp8Numbers& numbers, void* counters, const runtime::DeviceInfo& device,
            Stream stream) {
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    Fp8QuantizeParams params = make_params(call, choice, numbers, counters);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_kernels(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call,
                 const runtime::DeviceInfo& device, Stream stream) {
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Fp8QuantizeProblem& problem = call.problem;
    const policy::Candidate candidate = policy::rank_fp8_quantize(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("fp8_quantize can't run on {}: {}; use another GPU, or host "
                                "tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::Fp8QuantizeChoice codes = policy::choose_fp8_quantize(problem, facts);
    Fp8Numbers numbers{number(args.multiplier), nullptr, number(args.scale), number(args.amax)};
    if (!policy::takes_two_launches(problem)) {
        const runtime::Workspace workspace =
            runtime::take_workspace(stream, 0, codes.counter_bytes);
        launch(call, codes, numbers, workspace.counters(), device, stream);
        return;
    }
    const policy::Fp8QuantizeChoice amax =
        policy::choose_fp8_quantize(policy::amax_of(problem), facts);
    // Both are at hand before either is launched.
    load_kernel(codes.spec, device, stream);
    const runtime::Workspace workspace =
        runtime::take_workspace(stream, args.multiplier ? 0 : sizeof(float), amax.counter_bytes);
    float* const multiplier =
        args.multiplier ? number(args.multiplier) : static_cast<float*>(workspace.data());
    numbers.multiplier = nullptr;
    numbers.new_multiplier = multiplier;
    launch(call, amax, numbers, workspace.counters(), device, stream);
    launch(call, codes, {.multiplier = multiplier}, nullptr, device, stream);
}

void set(const std::optional<Tensor>& tensor, float value, Stream stream) {
    if (!tensor) return;
    runtime::check(runtime::driver().cuMemsetD32Async(std::bit_cast<CUdeviceptr>(tensor->data),
                                                      std::bit_cast<unsigned>(value), 1, stream),
                   "writing a number to the GPU");
}

void run_on_gpu(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.x.device);
    if (!checks::has_no_rows(call.problem)) return run_kernels(args, call, device, stream);
    // Nothing to read; what is asked of it is defined all the same. Where the multiplier is given,
    // its inverse is the kernel's to write.
    set(args.amax, 0.0f, stream);
    if (args.dynamic) set(args.multiplier, 1.0f, stream);
    if (args.dynamic) set(args.scale, 1.0f, stream);
}

void run_reference(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call) {
    reference::Fp8Quantize reference;
    reference.x = call.x;
    reference.out = call.out;
    reference.out_transposed = call.out_transposed;
    reference.multiplier = args.multiplier;
    reference.scale = args.scale;
    reference.amax = args.amax;
    reference.dynamic = args.dynamic;
    reference::fp8_quantize(reference);
    if (!checks::has_no_rows(call.problem)) note_reference_ran();
}

}  // namespace

void fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    note_nothing_ran();
    const checks::Fp8QuantizeCall call = checks::check(args);
    const Decision decision = decide(Operation::fp8_quantize, args.x.device);
    if (decision.backend == Backend::reference) {
        run_reference(args, call);
    } else {
        run_on_gpu(args, call, stream);
    }
}

void ops::fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    note_nothing_ran();
    const checks::Fp8QuantizeCall call = checks::check(args);
    if (args.x.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::fp8_quantize runs on a GPU, and the tensors are in host memory: copy "
                    "them to a GPU, or call jitney::fp8_quantize");
    }
    run_on_gpu(args, call, stream);
}

}  // namespace jitney
