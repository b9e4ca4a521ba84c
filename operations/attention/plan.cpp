#include "jitney/plan.hpp"

#include "operations/attention/check_plan.hpp"
#include "operations/attention/operation.hpp"
#include "operations/call_form.hpp"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/explained_choice.hpp"
#include "operations/last_run.hpp"
#include "operations/own_workspace.hpp"
#include "operations/path.hpp"
#include "operations/started_call.hpp"

namespace jitney {

struct PreparedPlan {
    AttentionArgs args;
    checks::FormMemory<AttentionArgs> memory;
    bool aligned = true;
    bool on_host = false;
    std::unique_ptr<const path::Prepared<AttentionArgs>>
        prepared;  // null on the host, and without rows
    Explanation explanation;
    std::size_t workspace_bytes = 0;
};

namespace {

// Those of a plan's addresses that are not known yet are aligned.
void fill_addresses(AttentionArgs& args) {
    for_each_tensor(args, [](const auto&, Tensor& tensor) {
        if (tensor.data == nullptr) tensor.data = reinterpret_cast<void*>(std::uintptr_t{256});
    });
}

void prepare_kernels(PreparedPlan& plan, const policy::AttentionProblem& problem,
                     const Decision& decision) {
    using Op = OperationOf<AttentionArgs>;
    plan.explanation = explain(plan.args);
    plan.prepared = path::prepare(plan.args, problem, decision, nullptr);
    // Where a kernel was named that can't run the call, another does.
    const Op::Choice& choice = plan.prepared->choice;
    path::tell_choice<AttentionArgs>(plan.explanation, problem, choice);
    plan.explanation.workspace_bytes = own_workspace_bytes(Op::scratch(choice));
    plan.workspace_bytes = plan.explanation.workspace_bytes;
}

std::shared_ptr<const PreparedPlan> make_plan(const AttentionArgs& args) {
    const runtime::BorrowedThread thread;
    const auto plan = std::make_shared<PreparedPlan>();
    policy::AttentionProblem problem = checks::check(args, checks::Data::absent);
    checks::check_memory(args);
    // A plan is for any lengths.
    plan->args = args;
    plan->args.qo_indptr_host = {};
    problem.qo_indptr = {};
    const Decision decision = decide(OperationOf<AttentionArgs>::name, args.q.device);
    plan->aligned = problem.aligned;
    plan->on_host = decision.backend == Backend::reference;
    if (!checks::has_no_rows(problem)) {
        if (plan->on_host) {
            plan->explanation.chosen = "reference";
        } else {
            prepare_kernels(*plan, problem, decision);
        }
    }
    fill_addresses(plan->args);
    plan->memory = checks::FormMemory(plan->args);
    return plan;
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionArgs& args) : plan_(make_plan(args)) {}

void AttentionPlan::run(const AttentionArgs& args, Stream stream) const {
    const StartedCall started;
    const PreparedPlan& plan = *plan_;
    if (!is_like<Differs::in_runs>(args, plan.args) || !plan.memory.lies_apart(args)) [[unlikely]] {
        checks::check_planned(args, plan.args, plan.aligned && plan.prepared != nullptr);
    }
    if (plan.prepared != nullptr) {
        path::launch(*plan.prepared, args, stream);
    } else if (!plan.explanation.chosen.empty()) {
        OperationOf<AttentionArgs>::run_reference(args);
        note_reference_ran();
    }
}

std::size_t AttentionPlan::workspace_bytes() const noexcept {
    return plan_->workspace_bytes;
}

const Explanation& AttentionPlan::explanation() const noexcept {
    return plan_->explanation;
}

}  // namespace jitney
