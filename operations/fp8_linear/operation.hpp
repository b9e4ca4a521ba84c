// A linear layer on FP8 as the path of all calls takes it: a row of launches, forward or backward.
#pragma once

#include "jitney/explain.hpp"
#include "operations/decision.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/fp8_linear/choose.hpp"
#include "operations/fp8_linear/fields.hpp"
#include "operations/fp8_linear/fill.hpp"
#include "operations/fp8_linear/pass.hpp"
#include "operations/fp8_quantize/operation.hpp"
#include "operations/operation.hpp"

namespace jitney {

// On host tensors, the codes of its own included.
void run_on_host(const Fp8LinearPass& pass);

// What both directions have in common.
template <class Args>
struct Fp8LinearOperation {
    using Problem = policy::Fp8LinearProblem;
    using Choice = policy::Fp8LinearChoice;
    using Params = Fp8LinearParams;
    using Explained = ExplainedLaunches;

    // What can be named are the kernels of its products.
    static constexpr std::string_view kernels_of = "fp8_gemm";
    static constexpr std::string_view otherwise = "use another GPU, or host tensors";

    static Problem check(const Args& args, checks::Data data) { return checks::check(args, data); }
    static bool has_no_rows(const Problem& problem) noexcept {
        return policy::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId> kernel) {
        return policy::rank_fp8_linear(problem, facts, kernel);
    }
    static Steps steps(const Choice& choice) noexcept {
        Steps steps;
        const Params none;
        for_each_launch(choice, none,
                        [&](const policy::Spec& spec, const policy::Geometry& geometry, int,
                            const auto&, const auto&) {
                            steps.add({spec, geometry});
                        });
        return steps;
    }
    // The scales of a call without results are not computed, but the state's.
    template <class Asked>
    static bool computes(const Asked& asked) noexcept {
        return asked.casts[0] || asked.sums || asked.products[0] || asked.products[1];
    }
    static ScratchBytes scratch(const Choice& choice) noexcept {
        return bytes_of(choice.workspace);
    }
    static ScratchBytes scratch_anywhere(const Problem& problem, const Choice& choice,
                                         const policy::DeviceFacts& facts) {
        return bytes_of(policy::fp8_linear_workspace_anywhere(problem, choice, facts));
    }
    static void tell(ExplainedLaunches& explained, const Problem&, const Choice& choice) {
        std::size_t step = 0;
        const Params none;
        for_each_launch(
            choice, none,
            [&](const auto&, const auto&, int splits, const ScratchBytes& scratch, const auto&) {
                ExplainedLaunch& launch = explained.launches[step++];
                launch.splits = splits;
                launch.workspace_bytes = own_workspace_bytes(scratch);
            });
    }

    static Params fill(const Args& args, const Problem& problem, const Choice& choice) {
        return form_params(pass_of(args, nullptr), problem, choice);
    }
    static void set_addresses(Params& params, const Args& args, const Choice& choice,
                              const Scratch& scratch) {
        void* codes = nullptr;
        if (choice.workspace.code_bytes != 0)
            codes = static_cast<std::byte*>(scratch.data) + choice.workspace.codes_at();
        jitney::set_addresses(params, pass_of(args, codes), choice, scratch);
    }
    static void write_numbers(const Args& args, const Choice& choice, Stream stream) {
        if (!choice.casts_nothing) return;
        for (const auto& cast : pass_of(args, nullptr).casts) {
            if (cast && cast->is_empty()) set_numbers_of_nothing(cast->args, stream);
        }
    }

    static void run_reference(const Args& args) {
        std::vector<std::byte> codes(pass_of(args, nullptr).code_bytes);
        run_on_host(pass_of(args, codes.data()));
    }

  private:
    static ScratchBytes bytes_of(const policy::Fp8LinearWorkspace& workspace) noexcept {
        return {workspace.counter_bytes, workspace.data_bytes()};
    }
};

template <>
struct OperationOf<Fp8LinearArgs> : Fp8LinearOperation<Fp8LinearArgs> {
    static constexpr std::string_view name = "fp8_linear";
    static const Device& device(const Fp8LinearArgs& args) noexcept { return args.x.device; }
};

template <>
struct OperationOf<Fp8LinearBackwardArgs> : Fp8LinearOperation<Fp8LinearBackwardArgs> {
    static constexpr std::string_view name = "fp8_linear_backward";
    static const Device& device(const Fp8LinearBackwardArgs& args) noexcept {
        return args.grad_y.device;
    }
};

template <>
struct OperationOf<Fp8LinearInferenceArgs> : Fp8LinearOperation<Fp8LinearInferenceArgs> {
    static constexpr std::string_view name = "fp8_linear_inference";
    static const Device& device(const Fp8LinearInferenceArgs& args) noexcept {
        return args.x.device;
    }
};

}  // namespace jitney
