#include "jitney/fp8_quantize.hpp"

#include <fmt/format.h>

#include "jitney/error.hpp"
#include "kernel_sources/common/amax.h"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/fp8_linear/launches.hpp"
#include "operations/fp8_quantize/fill.hpp"
#include "operations/fp8_quantize/reference.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

float* number(const std::optional<Tensor>& tensor) {
    return tensor ? static_cast<float*>(tensor->data) : nullptr;
}

void launch(const runtime::Kernel& kernel, const checks::Fp8QuantizeCall& call,
            const policy::Fp8QuantizeChoice& choice, const Fp8Numbers& numbers, void* counters,
            Stream stream) {
    Fp8QuantizeParams params = make_params(call, choice, numbers, counters);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

// Whether the scale is the inverse of a number on the device.
bool inverts(const Fp8QuantizeArgs& args) noexcept {
    return args.scale && args.multiplier && !args.dynamic;
}

// Nothing to read; what is asked of it is defined all the same.
void set_numbers_of_nothing(const Fp8QuantizeArgs& args, Stream stream) {
    set_number(args.amax, 0.0f, stream);
    if (args.dynamic) set_number(args.multiplier, 1.0f, stream);
    set_number(args.scale, 1.0f, stream);
}

void run_on_gpu(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call, Stream stream) {
    const Fp8QuantizeLaunches launches(args, call.problem, stream);
    const HeldScratch held(args.workspace, launches.needs(), stream);
    launches.run(args, call, held.place(), stream);
}

}  // namespace

bool launches_nothing(const Fp8QuantizeArgs& args,
                      const policy::Fp8QuantizeProblem& problem) noexcept {
    return checks::has_no_rows(problem) && !inverts(args);
}

void quantize_on_host(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call,
                      float* state) {
    reference::Fp8Quantize reference;
    reference.x = call.x;
    reference.out = call.out;
    reference.out_transposed = call.out_transposed;
    reference.multiplier = args.multiplier;
    reference.scale = args.scale;
    reference.amax = args.amax;
    reference.dynamic = args.dynamic;
    // A cast of nothing makes no scale, on a GPU either.
    reference.state = launches_nothing(args, call.problem) ? nullptr : state;
    reference::fp8_quantize(reference);
    if (!launches_nothing(args, call.problem)) note_reference_ran();
}

Fp8QuantizeLaunches::Fp8QuantizeLaunches(const Fp8QuantizeArgs& args,
                                         const policy::Fp8QuantizeProblem& problem, Stream stream)
    : needs_(needed(args, problem)) {
    const runtime::DeviceInfo& device = enter_device(args.x.device);
    if (launches_nothing(args, problem)) return;
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_fp8_quantize(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("fp8_quantize can't run on {}: {}; use another GPU, or host "
                                "tensors",
                                device.name, policy::reason_text(candidate)));
    }
    codes_ = policy::choose_fp8_quantize(problem, facts);
    codes_kernel_ = &load_kernel(codes_.spec, device, stream);
    if (!policy::takes_two_launches(problem)) return;
    amax_ = policy::choose_fp8_quantize(policy::amax_of(problem), facts);
    amax_kernel_ = &load_kernel(amax_.spec, device, stream);
}

void Fp8QuantizeLaunches::run(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call,
                              const Scratch& scratch, Stream stream, float* state) const {
    if (codes_kernel_ == nullptr) return set_numbers_of_nothing(args, stream);
    Fp8Numbers numbers{number(args.multiplier), nullptr, number(args.scale), number(args.amax),
                       state};
    if (amax_kernel_ == nullptr) {
        void* const counters = call.problem.amax ? scratch.counters : nullptr;
        return launch(*codes_kernel_, call, codes_, numbers, counters, stream);
    }
    float* const multiplier =
        args.multiplier ? number(args.multiplier) : static_cast<float*>(scratch.data);
    numbers.multiplier = nullptr;
    numbers.new_multiplier = multiplier;
    launch(*amax_kernel_, call, amax_, numbers, scratch.counters, stream);
    launch(*codes_kernel_, call, codes_, {.multiplier = multiplier}, nullptr, stream);
}

ScratchBytes needed(const Fp8QuantizeArgs& args,
                    const policy::Fp8QuantizeProblem& problem) noexcept {
    if (launches_nothing(args, problem)) return {};
    const bool own_multiplier = policy::takes_two_launches(problem) && !args.multiplier;
    return {problem.amax ? sizeof(AmaxCounters) : 0, own_multiplier ? sizeof(float) : 0};
}

std::size_t workspace_bytes(const Fp8QuantizeArgs& args) {
    const checks::Fp8QuantizeCall call = checks::check(args, checks::Data::absent);
    if (args.x.device.type == DeviceType::cpu) return 0;
    return own_workspace_bytes(needed(args, call.problem));
}

void fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    const StartedCall started;
    const checks::Fp8QuantizeCall call = checks::check(args);
    const Decision decision = decide("fp8_quantize", args.x.device);
    if (decision.backend == Backend::reference) {
        quantize_on_host(args, call);
    } else {
        run_on_gpu(args, call, stream);
    }
}

void ops::fp8_quantize(const Fp8QuantizeArgs& args, Stream stream) {
    const StartedCall started;
    const checks::Fp8QuantizeCall call = checks::check(args);
    if (args.x.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::fp8_quantize runs on a GPU, and the tensors are in host memory: copy "
                    "them to a GPU, or call jitney::fp8_quantize");
    }
    run_on_gpu(args, call, stream);
}

}  // namespace jitney
