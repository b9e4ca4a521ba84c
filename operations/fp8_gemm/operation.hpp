// Products of FP8 matrices as the path of all calls takes them.
#pragma once

#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "operations/fp8_gemm/fill.hpp"
#include "operations/fp8_gemm/reference.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/operation.hpp"

namespace jitney {

inline ScratchBytes scratch_of(const policy::Fp8GemmWorkspace& workspace) noexcept {
    return {workspace.counter_bytes, workspace.partial_bytes};
}

template <>
struct OperationOf<Fp8GemmArgs> {
    using Problem = policy::Fp8GemmProblem;
    using Choice = policy::Fp8GemmChoice;
    using Params = Fp8GemmLaunchParams;

    static constexpr std::string_view name = "fp8_gemm";
    static constexpr std::string_view otherwise = "use another GPU, or host tensors";

    static const Device& device(const Fp8GemmArgs& args) noexcept { return args.a.device; }
    static Problem check(const Fp8GemmArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return policy::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId> kernel) {
        return policy::rank_fp8_gemm(problem, facts, kernel);
    }
    static Steps steps(const Choice& choice) noexcept { return {{choice.spec, choice.geometry}}; }
    static ScratchBytes scratch(const Choice& choice) noexcept {
        return scratch_of(choice.workspace);
    }
    static ScratchBytes scratch_anywhere(const Problem& problem, const Choice&,
                                         const policy::DeviceFacts& facts) {
        return scratch_of(policy::fp8_gemm_workspace_anywhere(problem, facts));
    }
    static void tell(Explanation& explanation, const Problem&, const Choice& choice) {
        explanation.splits = choice.splits;
    }

    static Params fill(const Fp8GemmArgs& args, const Problem& problem, const Choice& choice) {
        return form_launch(args, problem, choice);
    }
    static void set_addresses(Params& params, const Fp8GemmArgs& args, const Choice& choice,
                              const Scratch& scratch) {
        jitney::set_addresses(params, args, choice, scratch.data, scratch.counters);
    }

    // The amax of nothing is 0.
    static void run_empty(const Fp8GemmArgs& args, const Problem&, Backend backend, Stream stream) {
        if (!args.amax) return;
        if (backend == Backend::reference) return run_reference(args);
        enter_device(args.a.device);
        set_number(args.amax, 0.0f, stream);
    }
    static void run_reference(const Fp8GemmArgs& args) {
        reference::Fp8Gemm call;
        call.a = args.a;
        call.b = args.b;
        call.trans_a = args.trans_a;
        call.trans_b = args.trans_b;
        call.scale = args.dequant_scale;
        call.scale_a = args.scale_a;
        call.scale_b = args.scale_b;
        call.group_indptr = args.group_indptr;
        call.bias = args.bias;
        call.out = args.out;
        call.multiplier = args.out_multiplier;
        call.amax = args.amax;
        reference::fp8_gemm(call);
    }
};

}  // namespace jitney
