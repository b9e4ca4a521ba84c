#include "operations/attention/prepared.hpp"

#include <fmt/format.h>

#include "jitney/error.hpp"
#include "operations/attention/fill.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/own_workspace.hpp"

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

}  // namespace

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

std::unique_ptr<PreparedAttention> prepare(const AttentionArgs& args,
                                           const AttentionProblem& problem,
                                           const Decision& decision, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.q.device);
    auto prepared = std::make_unique<PreparedAttention>();
    prepared->args = args;
    prepared->memory = checks::FormMemory(args);
    prepared->qo_indptr_host.assign(args.qo_indptr_host.begin(), args.qo_indptr_host.end());
    prepared->args.qo_indptr_host = prepared->qo_indptr_host;
    prepared->decision = decision;
    prepared->choice = choose(problem, facts_of(device), decision);
    const AttentionChoice& choice = prepared->choice;
    prepared->kernel = &load_kernel(choice.spec, device, stream);
    prepared->params = form_params(args, problem, choice);
    if (choice.work_map) {
        prepared->map_kernel = &load_kernel(choice.work_map->spec, device, stream);
        prepared->map_params = form_map_params(prepared->params, choice);
    }
    if (choice.mask_bits) {
        prepared->mask_kernel = &load_kernel(choice.mask_bits->spec, device, stream);
    }
    return prepared;
}

void launch(const PreparedAttention& prepared, const AttentionArgs& args, Stream stream) {
    enter_device(args.q.device);
    const AttentionChoice& choice = prepared.choice;
    const HeldScratch held(args.workspace, bytes_of(choice.workspace), stream);
    const Scratch& scratch = held.place();
    AttentionParams params = prepared.params;
    set_addresses(params, args, choice, scratch.data, scratch.counters);
    if (prepared.map_kernel != nullptr) {
        WorkMapParams map_params = prepared.map_params;
        set_addresses(map_params, params);
        launch_kernel(*prepared.map_kernel, choice.work_map->geometry, &map_params, stream);
    }
    if (prepared.mask_kernel != nullptr) {
        launch_kernel(*prepared.mask_kernel, choice.mask_bits->geometry, &params, stream);
    }
    launch_kernel(*prepared.kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

}  // namespace jitney
