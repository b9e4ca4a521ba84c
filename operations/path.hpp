// The path of every call: check, decide, prepare, launch. A call whose form the thread has seen
// goes from a comparison straight to the launch.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "operations/call_memory.hpp"
#include "operations/decision.hpp"
#include "operations/explained_choice.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"
#include "operations/no_kernel.hpp"
#include "operations/operation.hpp"
#include "operations/own_workspace.hpp"
#include "operations/recent_calls.hpp"
#include "operations/started_call.hpp"
#include "runtime/device.hpp"

namespace jitney::path {

// A call with everything done that its form decides: checked, chosen, loaded. What is left is to
// put the addresses in and launch.
template <class Args>
struct Prepared {
    using Op = OperationOf<Args>;

    Args args;  // the form; its addresses mean nothing
    KeptLists<Args> lists;
    checks::FormMemory<Args> memory;
    Decision decision;
    typename Op::Choice choice;
    Steps steps;
    std::array<const runtime::Kernel*, Steps::most> kernels{};
    typename Op::Params params;  // without addresses

    Prepared() = default;
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
};

// What runs the problem. Where a kernel is named that can't: an error where that is strict, else a
// warning, and the first that can.
template <class Args>
typename OperationOf<Args>::Choice choose(const typename OperationOf<Args>::Problem& problem,
                                          const policy::DeviceFacts& facts,
                                          const Decision& decision, std::string_view device) {
    using Op = OperationOf<Args>;
    const auto rank = [&](std::optional<policy::KernelId> kernel) {
        if constexpr (requires { Op::rank_until_accepted(problem, facts, kernel); }) {
            return Op::rank_until_accepted(problem, facts, kernel);
        } else {
            return Op::rank(problem, facts, kernel);
        }
    };
    auto ranking = rank(decision.kernel);
    if (ranking.choice) return *std::move(ranking.choice);
    if (decision.kernel && ranking.candidates.size() > 1) {
        refuse_or_warn(ranking.candidates, decision, Op::name);
        ranking = rank(std::nullopt);
        if (ranking.choice) return *std::move(ranking.choice);
    }
    throw_none(ranking.candidates, Op::name, device, Op::otherwise);
}

// Chooses for the GPU of the current context and loads the kernels. `problem` is what the check of
// the arguments returned, and has rows.
template <class Args>
std::unique_ptr<Prepared<Args>> prepare(const Args& args,
                                        const typename OperationOf<Args>::Problem& problem,
                                        const Decision& decision, Stream stream) {
    using Op = OperationOf<Args>;
    const runtime::DeviceInfo& device = enter_device(Op::device(args));
    auto prepared = std::make_unique<Prepared<Args>>();
    prepared->args = args;
    prepared->memory = checks::FormMemory<Args>(args);
    prepared->lists.keep(prepared->args);
    prepared->decision = decision;
    prepared->choice = choose<Args>(problem, facts_of(device), decision, device.name);
    prepared->steps = Op::steps(prepared->choice);
    // The kernel that the call is named by comes first: it is the one that errors should name.
    const auto steps = prepared->steps.all();
    for (std::size_t number = steps.size(); number-- > 0;)
        prepared->kernels[number] = &load_kernel(steps[number].spec, device, stream);
    prepared->params = Op::fill(args, problem, prepared->choice);
    return prepared;
}

// Whether the call is told of by last_run().
template <class Op, class Asked>
bool computes(const Asked& asked) noexcept {
    if constexpr (requires { Op::computes(asked); }) {
        return Op::computes(asked);
    } else {
        return true;
    }
}

// `args` has the form of `prepared`.
template <class Args>
void launch(const Prepared<Args>& prepared, const Args& args, Stream stream) {
    using Op = OperationOf<Args>;
    enter_device(Op::device(args));
    const HeldScratch held(workspace_given(args), Op::scratch(prepared.choice), stream);
    typename Op::Params params = prepared.params;
    Op::set_addresses(params, args, prepared.choice, held.place());
    if constexpr (requires { Op::write_numbers(args, prepared.choice, stream); }) {
        Op::write_numbers(args, prepared.choice, stream);
    }
    std::size_t number = 0;
    for (const Step& step : prepared.steps.all()) {
        launch_kernel(*prepared.kernels[number], step.geometry, params.of(number), stream);
        ++number;
    }
    if (computes<Op>(prepared.choice)) note_ran(prepared.steps.last().spec);
}

// Nothing is computed where there are no rows; some operations write what is known of nothing.
template <class Args>
bool ends_empty(const Args& args, const typename OperationOf<Args>::Problem& problem,
                const Decision& decision, Stream stream) {
    using Op = OperationOf<Args>;
    if (!Op::has_no_rows(problem)) return false;
    if constexpr (requires { Op::run_empty(args, problem, decision.backend, stream); }) {
        Op::run_empty(args, problem, decision.backend, stream);
    }
    return true;
}

// The call of the operation: on the backend that the scopes, the environment and the tensors'
// device decide.
template <class Args>
void run(const Args& args, Stream stream) {
    using Op = OperationOf<Args>;
    using Recent = RecentCalls<Prepared<Args>>;
    const StartedCall started;
    const Decision decision = decide(kernels_of<Op>(), Op::device(args));
    if (const Prepared<Args>* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const auto problem = Op::check(args, checks::Data::present);
    if (ends_empty(args, problem, decision, stream)) return;
    if (decision.backend == Backend::reference) {
        Op::run_reference(args);
        if (computes<Op>(problem)) note_reference_ran();
    } else {
        launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
    }
}

// That very kernel, or an error that says why not; `called` is what was called.
template <class Args>
void run_kernel(const Args& args, policy::KernelId kernel, std::string_view called, Stream stream) {
    using Op = OperationOf<Args>;
    using Recent = RecentCalls<Prepared<Args>>;
    const StartedCall started;
    const Decision decision = {Backend::jit, kernel, true};
    if (const Prepared<Args>* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const auto problem = Op::check(args, checks::Data::present);
    if (Op::device(args).type == DeviceType::cpu) refuse_host(called, Op::name);
    if (ends_empty(args, problem, decision, stream)) return;
    launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
}

// The memory that a call needs beside its tensors, wherever they will lie.
template <class Args>
ScratchBytes scratch_of_call(const typename OperationOf<Args>::Problem& problem,
                             const policy::DeviceFacts& facts,
                             const typename OperationOf<Args>::Choice& choice) {
    using Op = OperationOf<Args>;
    if constexpr (requires { Op::scratch_anywhere(problem, choice, facts); }) {
        return Op::scratch_anywhere(problem, choice, facts);
    } else {
        return Op::scratch(choice);
    }
}

// How large a workspace of the caller's has to be; 0 where the call needs none.
template <class Args>
std::size_t workspace_bytes(const Args& args) {
    using Op = OperationOf<Args>;
    const auto problem = Op::check(args, checks::Data::absent);
    const Device& where = Op::device(args);
    const Decision decision = decide(kernels_of<Op>(), where);
    if (Op::has_no_rows(problem) || decision.backend == Backend::reference) return 0;
    const runtime::DeviceInfo& device = runtime::device(where.index);
    const policy::DeviceFacts facts = facts_of(device);
    const auto choice = choose<Args>(problem, facts, decision, device.name);
    return own_workspace_bytes(scratch_of_call<Args>(problem, facts, choice));
}

// What that choice launches.
template <class Args>
void tell_choice(typename ExplainedBy<OperationOf<Args>>::Type& explained,
                 const typename OperationOf<Args>::Problem& problem,
                 const typename OperationOf<Args>::Choice& choice) {
    using Op = OperationOf<Args>;
    add_steps(explained, Op::steps(choice));
    if constexpr (requires { Op::tell(explained, problem, choice); }) {
        Op::tell(explained, problem, choice);
    }
}

// What a call would run, and why not the others.
template <class Args>
typename ExplainedBy<OperationOf<Args>>::Type explain(const Args& args, std::string_view arch) {
    using Op = OperationOf<Args>;
    const auto problem = Op::check(args, checks::Data::absent);
    const policy::DeviceFacts facts = facts_to_explain(arch, Op::device(args));
    typename ExplainedBy<Op>::Type explained;
    explained.arch = facts.arch.text();
    if (Op::has_no_rows(problem)) return explained;
    const auto ranking = Op::rank(problem, facts, named_kernel(kernels_of<Op>()));
    explained.candidates = jitney::explained(ranking.candidates);
    if (ranking.choice) {
        tell_choice<Args>(explained, problem, *ranking.choice);
        explained.workspace_bytes =
            own_workspace_bytes(scratch_of_call<Args>(problem, facts, *ranking.choice));
    }
    return explained;
}

}  // namespace jitney::path
