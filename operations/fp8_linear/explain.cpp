// What a pass of a linear layer would launch.
#include <algorithm>

#include "operations/check.hpp"
#include "operations/explained_choice.hpp"
#include "operations/fp8_linear/launches.hpp"
#include "operations/fp8_linear/pass.hpp"
#include "operations/own_workspace.hpp"

namespace jitney {
namespace {

class Explainer {
  public:
    explicit Explainer(const policy::DeviceFacts& facts) : facts_(facts) {}

    void add(const Fp8QuantizeArgs& args) {
        const auto problem = checks::check(args, checks::Data::absent).problem;
        if (launches_nothing(args, problem)) return;
        if (!judge(policy::rank_fp8_quantize(problem, facts_))) return;
        if (policy::takes_two_launches(problem)) add_cast(policy::amax_of(problem));
        add_cast(problem);
    }

    void add_update() {
        const policy::Fp8UpdateChoice choice = policy::choose_fp8_update(facts_);
        add(choice.spec, choice.geometry, 1, {});
    }

    void add(const Fp8LinearPass::ColumnSums& sums) {
        if (sums.out.shape[0] == 0) return;
        const auto choice = policy::choose_column_sums(sums_problem(sums.x, sums.out), facts_);
        add(choice.spec, choice.geometry, choice.splits, bytes_of(choice));
    }

    void add(const Fp8GemmArgs& args) {
        const policy::Fp8GemmProblem problem = checks::check(args, checks::Data::absent);
        if (checks::has_no_rows(problem)) return;
        if (!judge(policy::rank_fp8_gemm(problem, facts_))) return;
        const policy::Fp8GemmChoice choice = policy::choose_fp8_gemm(problem, facts_);
        add(choice.spec, choice.geometry, choice.splits, bytes_of(choice.workspace));
    }

    // Nothing is launched where one of the kernels is refused.
    ExplainedLaunches all(std::size_t workspace_bytes) && {
        result_.arch = facts_.arch.text();
        if (std::ranges::all_of(result_.candidates, &ExplainedCandidate::accepted)) {
            result_.workspace_bytes = workspace_bytes;
        } else {
            result_.launches.clear();
        }
        return std::move(result_);
    }

  private:
    void add_cast(const policy::Fp8QuantizeProblem& problem) {
        const policy::Fp8QuantizeChoice choice = policy::choose_fp8_quantize(problem, facts_);
        add(choice.spec, choice.geometry, 1, {choice.counter_bytes, 0});
    }

    void add(const policy::Spec& spec, const policy::Geometry& geometry, int splits,
             const ScratchBytes& needs) {
        result_.launches.push_back({policy::text_of(spec), geometry.grid, geometry.block,
                                    geometry.shared_bytes, splits, own_workspace_bytes(needs)});
    }

    bool judge(const policy::Candidate& candidate) {
        ExplainedCandidate judged = explained(candidate);
        const auto known =
            std::ranges::find(result_.candidates, judged.kernel, &ExplainedCandidate::kernel);
        if (known == result_.candidates.end()) {
            result_.candidates.push_back(std::move(judged));
        } else if (known->accepted) {
            *known = std::move(judged);
        }
        return candidate.accepted();
    }

    const policy::DeviceFacts& facts_;
    ExplainedLaunches result_;
};

}  // namespace

ExplainedLaunches explain(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                          const policy::DeviceFacts& facts) {
    Explainer explainer(facts);
    for (const auto& cast : pass.casts) {
        if (cast) explainer.add(cast->args);
    }
    if (pass.update) explainer.add_update();
    if (pass.sums) explainer.add(*pass.sums);
    for (const auto& product : pass.products) {
        if (product) explainer.add(*product);
    }
    return std::move(explainer).all(workspace_bytes(pass, own, facts));
}

}  // namespace jitney
