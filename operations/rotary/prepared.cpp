#include "operations/rotary/prepared.hpp"

#include <fmt/format.h>

#include "jitney/error.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/rotary/fill.hpp"

namespace jitney {

std::unique_ptr<PreparedRotary> prepare(const RotaryArgs& args,
                                        const policy::RotaryProblem& problem,
                                        const Decision& decision, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.q.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_rotary(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("rotary_emb can't run on {}: {}; use another GPU, or host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    auto prepared = std::make_unique<PreparedRotary>();
    prepared->args = args;
    prepared->memory = checks::FormMemory(args);
    prepared->decision = decision;
    prepared->choice = policy::choose_rotary(problem, facts);
    prepared->kernel = &load_kernel(prepared->choice.spec, device, stream);
    prepared->params = form_params(args, problem, prepared->choice);
    return prepared;
}

void launch(const PreparedRotary& prepared, const RotaryArgs& args, Stream stream) {
    enter_device(args.q.device);
    RotaryParams params = prepared.params;
    set_addresses(params, args);
    launch_kernel(*prepared.kernel, prepared.choice.geometry, &params, stream);
    note_ran(prepared.choice.spec);
}

}  // namespace jitney
