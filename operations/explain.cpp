#include "jitney/explain.hpp"

#include "jitney/error.hpp"
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

void add_steps(Explanation& explanation, const Steps& steps, const ScratchBytes& scratch) {
    fill(explanation, steps.last().spec, steps.last().geometry);
    explanation.before.clear();
    for (const Step& step : steps.before())
        explanation.before.push_back(policy::text_of(step.spec));
    explanation.workspace_bytes = own_workspace_bytes(scratch);
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
