// Merging partial results as the path of all calls takes it.
#pragma once

#include <vector>

#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/merge_states/fields.hpp"
#include "operations/merge_states/fill.hpp"
#include "operations/merge_states/memory.hpp"
#include "operations/merge_states/reference.hpp"
#include "operations/operation.hpp"

namespace jitney {

template <>
struct KeptLists<MergeStatesArgs> {
    void keep(MergeStatesArgs& args) {
        parts.assign(args.parts.begin(), args.parts.end());
        args.parts = parts;
    }
    template <class Visit>
    void for_each_tensor(const Visit& visit) {
        for (PartialState& part : parts) {
            visit(part.out);
            visit(part.lse);
        }
    }
    std::vector<PartialState> parts;
};

template <>
struct OperationOf<MergeStatesArgs> {
    using Problem = policy::MergeStatesProblem;
    using Choice = policy::MergeStatesChoice;
    using Params = OneLaunch<MergeStatesParams>;

    static constexpr std::string_view name = "merge_states";
    static constexpr std::string_view otherwise = "merge fewer rows at a time, or use host tensors";

    static const Device& device(const MergeStatesArgs& args) noexcept { return args.out.device; }
    static Problem check(const MergeStatesArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return checks::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId>) {
        return policy::rank_merge_states(problem, facts);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice&) noexcept { return {}; }

    static Params fill(const MergeStatesArgs& args, const Problem& problem,
                       const Choice&) noexcept {
        return {form_params(args, problem)};
    }
    static void set_addresses(Params& params, const MergeStatesArgs& args, const Choice&,
                              const Scratch&) noexcept {
        jitney::set_addresses(params.params, args);
    }

    static void run_reference(const MergeStatesArgs& args) {
        reference::MergeStates call;
        call.out = args.out;
        call.lse = args.lse;
        for (const PartialState& part : args.parts)
            call.parts.push_back({part.out, part.lse});
        reference::merge_states(call);
    }
};

}  // namespace jitney
