// Appending to a cache as the path of all calls takes it.
#pragma once

#include "operations/append_kv/choose.hpp"
#include "operations/append_kv/fields.hpp"
#include "operations/append_kv/fill.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/operation.hpp"
#include "operations/reference_call.hpp"

namespace jitney {

template <>
struct OperationOf<AppendKvArgs> {
    using Problem = policy::AppendKvProblem;
    using Choice = policy::AppendKvChoice;
    using Params = OneLaunch<AppendKvParams>;

    static constexpr std::string_view name = "append_kv";
    static constexpr std::string_view otherwise =
        "append fewer rows at a time, or use host tensors";

    static const Device& device(const AppendKvArgs& args) noexcept { return args.new_k.device; }
    static Problem check(const AppendKvArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return checks::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId>) {
        return policy::rank_append_kv(problem, facts);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice&) noexcept { return {}; }

    static Params fill(const AppendKvArgs& args, const Problem& problem,
                       const Choice& choice) noexcept {
        return {form_params(args, problem, choice)};
    }
    static void set_addresses(Params& params, const AppendKvArgs& args, const Choice&,
                              const Scratch&) noexcept {
        jitney::set_addresses(params.params, args);
    }

    static void run_reference(const AppendKvArgs& args) {
        reference::append_kv(reference_call(args));
    }
};

}  // namespace jitney
