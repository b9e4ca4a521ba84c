// Normalising rows as the path of all calls takes it.
#pragma once

#include "kernel_sources/norm/rms_norm.h"
#include "operations/check.hpp"
#include "operations/operation.hpp"
#include "operations/rms_norm/choose.hpp"
#include "operations/rms_norm/fields.hpp"
#include "operations/rms_norm/fill.hpp"
#include "operations/rms_norm/reference.hpp"

namespace jitney {

template <>
struct OperationOf<RmsNormArgs> {
    using Problem = policy::RmsNormProblem;
    using Choice = policy::RmsNormChoice;
    using Params = OneLaunch<RmsNormParams>;

    static constexpr std::string_view name = "rms_norm";
    static constexpr std::string_view otherwise =
        "normalise fewer rows at a time, or use host tensors";

    static const Device& device(const RmsNormArgs& args) noexcept { return args.x.device; }
    static Problem check(const RmsNormArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept { return problem.rows == 0; }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId>) {
        return policy::rank_rms_norm(problem, facts);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice&) noexcept { return {}; }

    static Params fill(const RmsNormArgs& args, const Problem& problem, const Choice&) {
        return {form_params(args, problem)};
    }
    static void set_addresses(Params& params, const RmsNormArgs& args, const Choice&,
                              const Scratch&) noexcept {
        jitney::set_addresses(params.params, args);
    }

    static void run_reference(const RmsNormArgs& args) {
        reference::rms_norm({args.x, args.residual, args.sum, args.weight, args.bias, args.out,
                             args.multiplier, args.scale,
                             static_cast<double>(args.eps.value_or(kDefaultNormEps)),
                             args.one_plus_weight, args.subtract_mean});
    }
};

}  // namespace jitney
