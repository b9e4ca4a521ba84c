#include "jitney/rotary.hpp"

#include "jitney/error.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/last_run.hpp"
#include "operations/recent_calls.hpp"
#include "operations/reference_call.hpp"
#include "operations/rotary/prepared.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

using Recent = RecentCalls<PreparedRotary>;

void run_reference(const RotaryArgs& args) {
    reference::rotary(reference_call(args));
    note_reference_ran();
}

}  // namespace

void rotary_emb(const RotaryArgs& args, Stream stream) {
    const StartedCall started;
    const Decision decision = decide(Operation::rotary, args.q.device);
    if (const PreparedRotary* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::RotaryProblem problem = checks::check(args);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
    }
}

void ops::rotary_emb(const RotaryArgs& args, Stream stream) {
    const StartedCall started;
    const Decision decision = {Backend::jit, policy::KernelId::rotary_emb, true};
    if (const PreparedRotary* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::RotaryProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::rotary_emb runs on a GPU, and the tensors are in host memory: copy them "
                    "to a GPU, or call jitney::rotary_emb");
    }
    if (checks::has_no_rows(problem)) return;
    launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
}

}  // namespace jitney
