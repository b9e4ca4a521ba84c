#include "jitney/attention.hpp"

#include <fmt/format.h>

#include "jitney/error.hpp"
#include "operations/attention/prepared.hpp"
#include "operations/attention/reference.hpp"
#include "operations/check.hpp"
#include "operations/check_enum.hpp"
#include "operations/decision.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/own_workspace.hpp"
#include "operations/recent_calls.hpp"
#include "operations/reference_call.hpp"
#include "operations/started_call.hpp"

namespace jitney {
namespace {

using policy::KernelId;
using Recent = RecentCalls<PreparedAttention>;

void run_reference(const AttentionArgs& args) {
    reference::attention(reference_call(args));
    note_reference_ran();
}

void run_named(const AttentionArgs& args, KernelId kernel, Stream stream) {
    const Decision decision = {Backend::jit, kernel, true};
    if (const PreparedAttention* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::AttentionProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} runs on a GPU, and the tensors are in host memory: copy them "
                                "to a GPU, or call jitney::attention",
                                policy::info(kernel).name));
    }
    if (checks::has_no_rows(problem)) return;
    launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
}

void run_variant(const AttentionArgs& args, ops::Variant variant, KernelId scalar, KernelId mma,
                 Stream stream) {
    const StartedCall started;
    checks::check_enum<ops::Variant>(
        "variant", variant, {{ops::Variant::scalar, "scalar"}, {ops::Variant::mma, "mma"}});
    run_named(args, variant == ops::Variant::mma ? mma : scalar, stream);
}

}  // namespace

void attention(const AttentionArgs& args, Stream stream) {
    const StartedCall started;
    const Decision decision = decide(Operation::attention, args.q.device);
    if (const PreparedAttention* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::AttentionProblem problem = checks::check(args);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
    }
}

std::size_t workspace_bytes(const AttentionArgs& args) {
    const policy::AttentionProblem problem = checks::check(args, checks::Data::absent);
    const Decision decision = decide(Operation::attention, args.q.device);
    if (checks::has_no_rows(problem) || decision.backend == Backend::reference) return 0;
    const policy::DeviceFacts facts = facts_of(runtime::device(args.q.device.index));
    return own_workspace_bytes(bytes_of(choose(problem, facts, decision).workspace));
}

namespace ops {

void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream) {
    run_variant(args, variant, KernelId::attn_prefill_scalar, KernelId::attn_prefill_mma, stream);
}

void attn_decode(const AttentionArgs& args, Variant variant, Stream stream) {
    run_variant(args, variant, KernelId::attn_decode_scalar, KernelId::attn_decode_mma, stream);
}

}  // namespace ops
}  // namespace jitney
