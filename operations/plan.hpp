// Plans of every operation: what the path of calls prepared, kept by the caller. An operation
// instantiates Plan of its arguments beside its calls.
#pragma once

#include "jitney/plan.hpp"

#include <memory>

#include "operations/check_plan.hpp"
#include "operations/path.hpp"

namespace jitney {

template <class Args>
struct PreparedPlan {
    using Op = OperationOf<Args>;

    Args args;  // the form; its addresses mean nothing, but where results are in place
    KeptLists<Args> lists;
    checks::FormMemory<Args> memory;
    typename Op::Problem problem;
    Backend backend = Backend::jit;
    bool is_empty = false;
    // Null on the host, and without rows.
    std::unique_ptr<const path::Prepared<Args>> prepared;
    typename ExplainedBy<Op>::Type explanation;
    std::size_t workspace_bytes = 0;
};

namespace path {

// Those of a plan's addresses that are not known yet are aligned, and further from each other and
// from all memory than any tensor reaches.
template <class Args>
void place_unknown(Args& args, KeptLists<Args>& lists) noexcept {
    std::uintptr_t place = 0;
    const auto place_one = [&place](Tensor& tensor) {
        ++place;
        if (tensor.data == nullptr) tensor.data = reinterpret_cast<void*>(place << 58);
    };
    for_each_tensor(args, [&](const ListedTensor&, Tensor& tensor) { place_one(tensor); });
    lists.for_each_tensor(place_one);
}

template <class Args>
void prepare_kernels(PreparedPlan<Args>& plan, const Decision& decision) {
    using Op = OperationOf<Args>;
    plan.explanation = explain(plan.args, {});
    plan.prepared = prepare(plan.args, plan.problem, decision, nullptr);
    // Where a kernel was named that can't run the call, another does.
    const typename Op::Choice& choice = plan.prepared->choice;
    tell_choice<Args>(plan.explanation, plan.problem, choice);
    plan.workspace_bytes = own_workspace_bytes(Op::scratch(choice));
    plan.explanation.workspace_bytes = plan.workspace_bytes;
}

template <class Args>
std::shared_ptr<const PreparedPlan<Args>> make_plan(const Args& args) {
    using Op = OperationOf<Args>;
    const runtime::BorrowedThread thread;
    const auto plan = std::make_shared<PreparedPlan<Args>>();
    plan->args = args;
    plan->lists.keep(plan->args);
    place_unknown(plan->args, plan->lists);
    plan->problem = Op::check(plan->args, checks::Data::placed);
    if constexpr (requires { Op::leave_open(plan->args); }) {
        Op::leave_open(plan->args);
        plan->problem = Op::check(plan->args, checks::Data::placed);
    }
    plan->memory = checks::FormMemory<Args>(plan->args);
    const Decision decision = decide(kernels_of<Op>(), Op::device(args));
    plan->backend = decision.backend;
    plan->is_empty = Op::has_no_rows(plan->problem);
    if (plan->is_empty) return plan;
    if (plan->backend == Backend::reference) {
        tell_reference(plan->explanation);
    } else {
        prepare_kernels(*plan, decision);
    }
    return plan;
}

}  // namespace path

template <class Args>
Plan<Args>::Plan(const Args& args) : plan_(path::make_plan(args)) {}

template <class Args>
void Plan<Args>::run(const Args& args, Stream stream) const {
    using Op = OperationOf<Args>;
    const StartedCall started;
    if (plan_ == nullptr) [[unlikely]]
        checks::refuse_no_plan();
    const PreparedPlan<Args>& plan = *plan_;
    if (!is_like<Differs::in_runs>(args, plan.args) || !plan.memory.lies_apart(args)) [[unlikely]] {
        checks::check_planned(args, plan.args, plan.problem, plan.prepared != nullptr);
    }
    if (plan.prepared != nullptr) return path::launch(*plan.prepared, args, stream);
    if (!plan.is_empty) {
        Op::run_reference(args);
        if (path::computes<Op>(plan.problem)) note_reference_ran();
    } else if constexpr (requires { Op::run_empty(args, plan.problem, plan.backend, stream); }) {
        Op::run_empty(args, plan.problem, plan.backend, stream);
    }
}

template <class Args>
std::size_t Plan<Args>::workspace_bytes() const noexcept {
    return plan_ == nullptr ? 0 : plan_->workspace_bytes;
}

template <class Args>
const typename Plan<Args>::Explained& Plan<Args>::explanation() const noexcept {
    static const Explained nothing;
    return plan_ == nullptr ? nothing : plan_->explanation;
}

}  // namespace jitney
