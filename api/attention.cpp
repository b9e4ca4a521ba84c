#include "jitney/attention.hpp"

#include <fmt/format.h>

#include "api/attention_params.hpp"
#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "jitney/error.hpp"
#include "reference/attention.hpp"
#include "runtime/workspace.hpp"

namespace jitney {
namespace {

using policy::AttentionChoice;
using policy::AttentionProblem;
using policy::DeviceFacts;
using policy::KernelId;

std::string reason_of(const AttentionProblem& problem, const DeviceFacts& facts, KernelId kernel) {
    for (const policy::Candidate& candidate : policy::rank_attention(problem, facts, kernel)) {
        if (candidate.kernel == kernel) return policy::reason_text(candidate);
    }
    return {};
}

[[noreturn]] void throw_not_forced(KernelId kernel, const std::string& reason) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} can't run this call: {}; name another kernel, or let "
                            "jitney::attention choose",
                            policy::info(kernel).name, reason));
}

[[noreturn]] void throw_none(const AttentionProblem& problem, const DeviceFacts& facts) {
    std::string reasons;
    for (const policy::Candidate& candidate : policy::rank_attention(problem, facts)) {
        if (!reasons.empty()) reasons += "; ";
        reasons += fmt::format("{}: {}", policy::info(candidate.kernel).name,
                               policy::reason_text(candidate));
    }
    throw Error(ErrorCode::unsupported,
                fmt::format("no attention kernel can run this call on {} ({}): change what the "
                            "reasons name, or give host tensors to the reference backend",
                            facts.arch.text(), reasons));
}

// The named kernel or an error where that is strict; else the first that can run the problem.
AttentionChoice choose(const AttentionProblem& problem, const DeviceFacts& facts,
                       const Decision& decision) {
    if (std::optional<AttentionChoice> choice =
            policy::choose_attention(problem, facts, decision.kernel)) {
        return *choice;
    }
    if (decision.kernel) {
        const std::string reason = reason_of(problem, facts, *decision.kernel);
        if (decision.strict) throw_not_forced(*decision.kernel, reason);
        warn_not_forced(*decision.kernel, reason);
        if (std::optional<AttentionChoice> choice = policy::choose_attention(problem, facts)) {
            return *choice;
        }
    }
    throw_none(problem, facts);
}

// The layers of a model ask for the same again and again: each thread keeps its last choice.
const AttentionChoice& choose_again(const AttentionProblem& problem,
                                    const runtime::DeviceInfo& device, const Decision& decision) {
    struct Last {
        AttentionProblem problem;
        Decision decision;
        int device = -1;
        AttentionChoice choice;
    };
    thread_local Last last;
    if (last.device != device.ordinal || last.problem != problem || last.decision != decision) {
        last.device = -1;  // should the choice throw
        last.choice = choose(problem, facts_of(device), decision);
        last.problem = problem;
        last.decision = decision;
        last.device = device.ordinal;
    }
    return last.choice;
}

void run_kernel(const AttentionArgs& args, const AttentionProblem& problem,
                const Decision& decision, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.q.device);
    const AttentionChoice choice = choose_again(problem, device, decision);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    const runtime::Kernel* map_kernel =
        choice.work_map ? &load_kernel(choice.work_map->spec, device, stream) : nullptr;
    // Held until the kernels are in the stream.
    const runtime::Workspace workspace = runtime::take_workspace(
        stream, choice.workspace.scratch_bytes(), choice.workspace.arrived_bytes);
    AttentionParams params =
        make_params(args, problem, choice, workspace.data(), workspace.counters());
    if (map_kernel != nullptr) {
        WorkMapParams map = make_map_params(params, choice);
        launch_kernel(*map_kernel, choice.work_map->geometry, &map, stream);
    }
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const AttentionArgs& args) {
    reference::Attention call;
    call.q = args.q;
    call.k = args.k;
    call.v = args.v;
    call.out = args.out;
    call.mask = args.mask;
    call.lse = args.lse;
    call.causal = args.causal;
    if (args.scale) call.scale = static_cast<double>(*args.scale);
    call.qo_indptr = args.qo_indptr;
    call.kv_indptr = args.kv_indptr;
    call.kv_lens = args.kv_lens;
    call.req_to_token = args.req_to_token;
    call.req_pool_indices = args.req_pool_indices;
    call.block_table = args.block_table;
    call.kv_page_indptr = args.kv_page_indptr;
    call.kv_page_indices = args.kv_page_indices;
    call.last_page_len = args.last_page_len;
    call.window_left = args.window_left;
    call.window_right = args.window_right;
    if (args.softcap) call.softcap = static_cast<double>(*args.softcap);
    call.alibi_slopes = args.alibi_slopes;
    call.sinks = args.sinks;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    reference::attention(call);
    note_reference_ran();
}

void run_named(const AttentionArgs& args, KernelId kernel, Stream stream) {
    note_nothing_ran();
    const AttentionProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} runs on a GPU, and the tensors are in host memory: copy them "
                                "to a GPU, or call jitney::attention",
                                policy::info(kernel).name));
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, {Backend::jit, kernel, true}, stream);
}

}  // namespace

void attention(const AttentionArgs& args, Stream stream) {
    note_nothing_ran();
    const AttentionProblem problem = checks::check(args);
    const Decision decision = decide(Operation::attention, args.q.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, decision, stream);
    }
}

namespace ops {

void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream) {
    run_named(args,
              variant == Variant::mma ? KernelId::attn_prefill_mma : KernelId::attn_prefill_scalar,
              stream);
}

void attn_decode(const AttentionArgs& args, Variant variant, Stream stream) {
    run_named(args,
              variant == Variant::mma ? KernelId::attn_decode_mma : KernelId::attn_decode_scalar,
              stream);
}

}  // namespace ops
}  // namespace jitney
