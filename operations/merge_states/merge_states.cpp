#include "jitney/merge_states.hpp"

#include <fmt/format.h>

#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/merge_states/fill.hpp"
#include "operations/merge_states/reference.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

void run_kernel(const MergeStatesArgs& args, const policy::MergeStatesProblem& problem,
                Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.out.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_merge_states(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("attn_merge_states can't run on {}: {}; merge fewer rows at a "
                                "time, or use host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::MergeStatesChoice choice = policy::choose_merge_states(problem, facts);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    MergeStatesParams params = make_params(args, problem);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const MergeStatesArgs& args) {
    reference::MergeStates call;
    call.out = args.out;
    call.lse = args.lse;
    for (const PartialState& part : args.parts)
        call.parts.push_back({part.out, part.lse});
    reference::merge_states(call);
    note_reference_ran();
}

}  // namespace

void merge_states(const MergeStatesArgs& args, Stream stream) {
    const StartedCall started;
    const policy::MergeStatesProblem problem = checks::check(args);
    const Decision decision = decide(Operation::merge_states, args.out.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::merge_states(const MergeStatesArgs& args, Stream stream) {
    const StartedCall started;
    const policy::MergeStatesProblem problem = checks::check(args);
    if (args.out.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::merge_states runs on a GPU, and the tensors are in host memory: copy "
                    "them to a GPU, or call jitney::merge_states");
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
