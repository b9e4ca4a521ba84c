// Rotary position embedding as the path of all calls takes it.
#pragma once

#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/operation.hpp"
#include "operations/reference_call.hpp"
#include "operations/rotary/choose.hpp"
#include "operations/rotary/fields.hpp"
#include "operations/rotary/fill.hpp"

namespace jitney {

template <>
struct OperationOf<RotaryArgs> {
    using Problem = policy::RotaryProblem;
    using Choice = policy::RotaryChoice;
    using Params = OneLaunch<RotaryParams>;

    static constexpr std::string_view name = "rotary_emb";
    static constexpr std::string_view otherwise = "use another GPU, or host tensors";

    static const Device& device(const RotaryArgs& args) noexcept { return args.q.device; }
    static Problem check(const RotaryArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return checks::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId>) {
        return policy::rank_rotary(problem, facts);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice&) noexcept { return {}; }

    static Params fill(const RotaryArgs& args, const Problem& problem,
                       const Choice& choice) noexcept {
        return {form_params(args, problem, choice)};
    }
    static void set_addresses(Params& params, const RotaryArgs& args, const Choice&,
                              const Scratch&) noexcept {
        jitney::set_addresses(params.params, args);
    }

    static void run_reference(const RotaryArgs& args) { reference::rotary(reference_call(args)); }
};

}  // namespace jitney
