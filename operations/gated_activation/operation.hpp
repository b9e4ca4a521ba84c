// Gated activations as the path of all calls takes them.
#pragma once

#include "operations/check.hpp"
#include "operations/gated_activation/choose.hpp"
#include "operations/gated_activation/fields.hpp"
#include "operations/gated_activation/fill.hpp"
#include "operations/gated_activation/reference.hpp"
#include "operations/operation.hpp"

namespace jitney {

template <>
struct OperationOf<GatedActivationArgs> {
    using Problem = policy::GatedActivationProblem;
    using Choice = policy::GatedActivationChoice;
    using Params = OneLaunch<GatedActivationParams>;

    static constexpr std::string_view name = "gated_activation";
    static constexpr std::string_view otherwise = "take fewer rows at a time, or use host tensors";

    static const Device& device(const GatedActivationArgs& args) noexcept {
        return args.gate.device;
    }
    static Problem check(const GatedActivationArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept { return problem.rows == 0; }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId>) {
        return policy::rank_gated_activation(problem, facts);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice&) noexcept { return {}; }

    static Params fill(const GatedActivationArgs& args, const Problem& problem,
                       const Choice& choice) {
        return {form_params(args, problem, choice)};
    }
    static void set_addresses(Params& params, const GatedActivationArgs& args, const Choice&,
                              const Scratch&) noexcept {
        jitney::set_addresses(params.params, args);
    }

    static void run_reference(const GatedActivationArgs& args) {
        reference::gated_activation({args.gate, args.up, args.out, args.multiplier, args.scale,
                                     static_cast<reference::Activation>(args.activation)});
    }
};

}  // namespace jitney
