#include "jitney/rotary.hpp"

#include <fmt/format.h>

#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "api/rotary_params.hpp"
#include "jitney/error.hpp"
#include "reference/rotary.hpp"

namespace jitney {
namespace {

void run_kernel(const RotaryArgs& args, const policy::RotaryProblem& problem, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.q.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_rotary(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("rotary_emb can't run on {}: {}; use another GPU, or host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::RotaryChoice choice = policy::choose_rotary(problem, facts);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    RotaryParams params = make_params(args, problem, choice);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const RotaryArgs& args) {
    reference::Rotary call;
    call.q = args.q;
    call.q_out = args.q_out;
    call.k = args.k;
    call.k_out = args.k_out;
    call.cos = args.cos;
    call.sin = args.sin;
    call.positions = args.positions;
    call.style = args.style == RotaryStyle::interleaved ? reference::RotaryStyle::interleaved
                                                        : reference::RotaryStyle::half_split;
    reference::rotary(call);
    note_reference_ran();
}

}  // namespace

void rotary_emb(const RotaryArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::RotaryProblem problem = checks::check(args);
    const Decision decision = decide(Operation::rotary, args.q.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::rotary_emb(const RotaryArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::RotaryProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::rotary_emb runs on a GPU, and the tensors are in host memory: copy them "
                    "to a GPU, or call jitney::rotary_emb");
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
