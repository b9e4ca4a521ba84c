#include "jitney/fp8_gemm.hpp"

#include <fmt/format.h>

#include "jitney/error.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/fp8_gemm/fill.hpp"
#include "operations/fp8_gemm/reference.hpp"
#include "operations/fp8_linear/launches.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

void run_kernel(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem, Stream stream) {
    const Fp8GemmLaunch launch(problem, args.a.device, stream);
    const HeldScratch held(args.workspace, launch.needs(), stream);
    launch.run(args, held.place(), stream);
}

// Whether nothing is to be written, not even the amax of nothing.
bool does_nothing(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem) {
    return checks::has_no_rows(problem) && !args.amax;
}

void run_reference(const Fp8GemmArgs& args) {
    reference::Fp8Gemm call;
    call.a = args.a;
    call.b = args.b;
    call.trans_a = args.trans_a;
    call.trans_b = args.trans_b;
    call.scale = args.dequant_scale;
    call.bias = args.bias;
    call.out = args.out;
    call.multiplier = args.out_multiplier;
    call.amax = args.amax;
    reference::fp8_gemm(call);
}

}  // namespace

Fp8GemmLaunch::Fp8GemmLaunch(const policy::Fp8GemmProblem& problem, const Device& where,
                             Stream stream)
    : problem_(problem) {
    const runtime::DeviceInfo& device = enter_device(where);
    if (checks::has_no_rows(problem)) return;
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_fp8_gemm(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("fp8_gemm can't run on {}: {}; use another GPU, or host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    choice_ = policy::choose_fp8_gemm(problem, facts);
    kernel_ = &load_kernel(choice_.spec, device, stream);
}

void Fp8GemmLaunch::run(const Fp8GemmArgs& args, const Scratch& scratch, Stream stream) const {
    if (kernel_ == nullptr) return set_number(args.amax, 0.0f, stream);
    void* const partials = choice_.workspace.partial_bytes != 0 ? scratch.data : nullptr;
    Fp8GemmParams params = make_params(args, problem_, choice_, partials, scratch.counters);
    launch_kernel(*kernel_, choice_.geometry, &params, stream);
    note_ran(choice_.spec);
}

ScratchBytes needed(const policy::Fp8GemmProblem& problem, const policy::DeviceFacts& facts) {
    ScratchBytes needs;
    if (checks::has_no_rows(problem) || !policy::rank_fp8_gemm(problem, facts).accepted()) {
        return needs;
    }
    for (const bool aligned : {false, true}) {
        policy::Fp8GemmProblem placed = problem;
        placed.aligned = aligned;
        needs = larger(needs, bytes_of(policy::choose_fp8_gemm(placed, facts).workspace));
    }
    return needs;
}

std::size_t workspace_bytes(const Fp8GemmArgs& args) {
    const policy::Fp8GemmProblem problem = checks::check(args, checks::Data::absent);
    const Decision decision = decide("fp8_gemm", args.a.device);
    if (decision.backend == Backend::reference) return 0;
    return own_workspace_bytes(needed(problem, facts_of(runtime::device(args.a.device.index))));
}

void fp8_gemm(const Fp8GemmArgs& args, Stream stream) {
    const StartedCall started;
    const policy::Fp8GemmProblem problem = checks::check(args);
    const Decision decision = decide("fp8_gemm", args.a.device);
    if (does_nothing(args, problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
        if (!checks::has_no_rows(problem)) note_reference_ran();
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::fp8_gemm(const Fp8GemmArgs& args, Stream stream) {
    const StartedCall started;
    const policy::Fp8GemmProblem problem = checks::check(args);
    if (args.a.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::fp8_gemm runs on a GPU, and the tensors are in host memory: copy them to "
                    "a GPU, or call jitney::fp8_gemm");
    }
    if (does_nothing(args, problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
