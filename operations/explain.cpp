#include "jitney/explain.hpp"

#include "jitney/append_kv.hpp"
#include "jitney/error.hpp"
#include "jitney/merge_states.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/explained_choice.hpp"
#include "operations/fp8_linear/launches.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/own_workspace.hpp"
#include "runtime/driver.hpp"

namespace jitney {
namespace {

void fill(Explanation& explanation, const policy::Spec& spec, const policy::Geometry& geometry) {
    explanation.chosen = policy::text_of(spec);
    explanation.grid = geometry.grid;
    explanation.block = geometry.block;
    explanation.shared_bytes = geometry.shared_bytes;
}

// Of an operation that one kernel does.
template <class Args, class Rank, class Choose>
Explanation explain_one(const Args& args, const Device& device, std::string_view arch,
                        const Rank& rank, const Choose& choose) {
    const auto problem = checks::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, device);
    Explanation explanation;
    explanation.arch = facts.arch.text();
    if (checks::has_no_rows(problem)) return explanation;
    const policy::Candidate candidate = rank(problem, facts);
    explanation.candidates.push_back(explained(candidate));
    if (candidate.accepted()) {
        const auto choice = choose(problem, facts);
        fill(explanation, choice.spec, choice.geometry);
    }
    return explanation;
}

}  // namespace

policy::DeviceFacts facts_to_explain(std::string_view arch, const Device& device) {
    if (!arch.empty()) return policy::facts_named(arch);
    if (device.type == DeviceType::cpu || !runtime::driver_available()) {
        throw Error(ErrorCode::no_device,
                    "there is no GPU to explain the call for: name an arch such as sm_90a");
    }
    return facts_of(runtime::device(device.index));
}

ExplainedCandidate explained(const policy::Candidate& candidate) {
    return {std::string(policy::info(candidate.kernel).name), candidate.accepted(),
            policy::reason_text(candidate)};
}

void add_choice(Explanation& explanation, const policy::AttentionProblem& problem,
                const policy::AttentionChoice& choice) {
    fill(explanation, choice.spec, choice.geometry);
    explanation.splits = choice.splits;
    explanation.batch_invariant = problem.batch_invariant;
    explanation.split_keys = choice.split_keys;
    explanation.before.clear();
    for (const auto& helper : {choice.work_map, choice.mask_bits}) {
        if (helper) explanation.before.push_back(policy::text_of(helper->spec));
    }
    explanation.workspace_bytes = own_workspace_bytes(bytes_of(choice.workspace));
}

Explanation explain(const AttentionArgs& args, std::string_view arch) {
    const policy::AttentionProblem problem = checks::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, args.q.device);
    Explanation explanation;
    explanation.arch = facts.arch.text();
    if (checks::has_no_rows(problem)) return explanation;
    const std::optional<policy::KernelId> kernel = named_kernel(Operation::attention);
    for (const policy::Candidate& candidate : policy::rank_attention(problem, facts, kernel)) {
        explanation.candidates.push_back(explained(candidate));
    }
    if (const auto choice = policy::choose_attention(problem, facts, kernel)) {
        add_choice(explanation, problem, *choice);
    }
    return explanation;
}

Explanation explain(const RotaryArgs& args, std::string_view arch) {
    return explain_one(args, args.q.device, arch, policy::rank_rotary, policy::choose_rotary);
}

Explanation explain(const MergeStatesArgs& args, std::string_view arch) {
    return explain_one(args, args.out.device, arch, policy::rank_merge_states,
                       policy::choose_merge_states);
}

Explanation explain(const AppendKvArgs& args, std::string_view arch) {
    return explain_one(args, args.new_k.device, arch, policy::rank_append_kv,
                       policy::choose_append_kv);
}

Explanation explain(const Fp8QuantizeArgs& args, std::string_view arch) {
    const policy::Fp8QuantizeProblem problem = checks::check(args, checks::Data::absent).problem;
    const policy::DeviceFacts facts = facts_to_explain(arch, args.x.device);
    Explanation explanation;
    explanation.arch = facts.arch.text();
    if (launches_nothing(args, problem)) return explanation;
    const policy::Candidate candidate = policy::rank_fp8_quantize(problem, facts);
    explanation.candidates.push_back(explained(candidate));
    if (!candidate.accepted()) return explanation;
    const policy::Fp8QuantizeChoice choice = policy::choose_fp8_quantize(problem, facts);
    fill(explanation, choice.spec, choice.geometry);
    explanation.workspace_bytes = own_workspace_bytes(needed(args, problem));
    if (policy::takes_two_launches(problem)) {
        const policy::Fp8QuantizeChoice amax =
            policy::choose_fp8_quantize(policy::amax_of(problem), facts);
        explanation.before.push_back(policy::text_of(amax.spec));
    }
    return explanation;
}

Explanation explain(const Fp8GemmArgs& args, std::string_view arch) {
    const policy::Fp8GemmProblem problem = checks::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, args.a.device);
    Explanation explanation;
    explanation.arch = facts.arch.text();
    if (checks::has_no_rows(problem)) return explanation;
    const policy::Candidate candidate = policy::rank_fp8_gemm(problem, facts);
    explanation.candidates.push_back(explained(candidate));
    if (candidate.accepted()) {
        const policy::Fp8GemmChoice choice = policy::choose_fp8_gemm(problem, facts);
        fill(explanation, choice.spec, choice.geometry);
        explanation.splits = choice.splits;
        explanation.workspace_bytes = own_workspace_bytes(bytes_of(choice.workspace));
    }
    return explanation;
}

}  // namespace jitney
