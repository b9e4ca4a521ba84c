#include "jitney/append_kv.hpp"

#include <fmt/format.h>

#include "operations/append_kv/fill.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/reference_call.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

void run_kernel(const AppendKvArgs& args, const policy::AppendKvProblem& problem, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.new_k.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_append_kv(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("append_kv can't run on {}: {}; append fewer rows at a time, or "
                                "use host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::AppendKvChoice choice = policy::choose_append_kv(problem, facts);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    AppendKvParams params = make_params(args, problem, choice);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const AppendKvArgs& args) {
    reference::append_kv(reference_call(args));
    note_reference_ran();
}

}  // namespace

void append_kv(const AppendKvArgs& args, Stream stream) {
    const StartedCall started;
    const policy::AppendKvProblem problem = checks::check(args);
    const Decision decision = decide(Operation::append_kv, args.new_k.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::append_kv(const AppendKvArgs& args, Stream stream) {
    const StartedCall started;
    const policy::AppendKvProblem problem = checks::check(args);
    if (args.new_k.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::append_kv runs on a GPU, and the tensors are in host memory: copy them "
                    "to a GPU, or call jitney::append_kv");
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
