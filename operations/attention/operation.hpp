// Attention as the path of all calls takes it.
#pragma once

#include <algorithm>
#include <vector>

#include "jitney/explain.hpp"
#include "operations/attention/choose.hpp"
#include "operations/attention/fields.hpp"
#include "operations/attention/fill.hpp"
#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/operation.hpp"
#include "operations/reference_call.hpp"
#include "runtime/tensor_map.hpp"

namespace jitney {

template <>
struct KeptLists<AttentionArgs> {
    void keep(AttentionArgs& args) {
        qo_indptr_host.assign(args.qo_indptr_host.begin(), args.qo_indptr_host.end());
        args.qo_indptr_host = qo_indptr_host;
    }
    template <class Visit>
    void for_each_tensor(const Visit&) noexcept {}
    std::vector<int> qo_indptr_host;
};

template <>
struct OperationOf<AttentionArgs> {
    using Problem = policy::AttentionProblem;
    using Choice = policy::AttentionChoice;

    static constexpr std::string_view name = "attention";
    static constexpr std::string_view otherwise =
        "change what the reasons name, or give host tensors to the reference backend";

    // The kernel that makes bits of a mask takes what attention takes.
    struct Params {
        PrefillWgmmaParams wgmma{};  // its part `attention` is what the other kernels take
        WorkMapParams map{};
        bool map_first = false;
        bool is_wgmma = false;
        bool addresses_lead = true;  // the tensor maps
        std::size_t helpers = 0;     // steps before attention itself
        void* of(std::size_t step) noexcept {
            if (map_first && step == 0) return &map;
            const bool whole = is_wgmma && step == helpers;
            return whole ? static_cast<void*>(&wgmma) : &wgmma.attention;
        }
    };

    static const Device& device(const AttentionArgs& args) noexcept { return args.q.device; }
    static Problem check(const AttentionArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return checks::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId> kernel) {
        return policy::rank_attention(problem, facts, kernel);
    }
    static Ranking<Choice> rank_until_accepted(const Problem& problem,
                                               const policy::DeviceFacts& facts,
                                               std::optional<policy::KernelId> kernel) {
        return policy::rank_until_accepted(problem, facts, kernel);
    }
    static Steps steps(const Choice& choice) noexcept {
        Steps steps;
        for (const auto& helper : {choice.work_map, choice.mask_bits}) {
            if (helper) steps.add({helper->spec, helper->geometry});
        }
        steps.add({choice.spec, choice.geometry});
        return steps;
    }
    static ScratchBytes scratch(const Choice& choice) noexcept {
        return {choice.workspace.arrived_bytes, choice.workspace.scratch_bytes()};
    }
    static void tell(Explanation& explanation, const Problem& problem, const Choice& choice) {
        explanation.splits = choice.splits;
        explanation.batch_invariant = problem.batch_invariant;
        explanation.split_keys = choice.split_keys;
    }

    static Params fill(const AttentionArgs& args, const Problem& problem, const Choice& choice) {
        Params params;
        params.wgmma.attention = form_params(args, problem, choice);
        params.map_first = choice.work_map.has_value();
        if (params.map_first) params.map = form_map_params(params.wgmma.attention, choice);
        params.helpers = steps(choice).before().size();
        params.is_wgmma = choice.spec.kernel == policy::KernelId::attn_prefill_wgmma;
        if (params.is_wgmma) {
            params.addresses_lead = runtime::addresses_lead_maps();
            form_wgmma_params(params.wgmma, args, problem, choice);
        }
        return params;
    }
    static void set_addresses(Params& params, const AttentionArgs& args, const Choice& choice,
                              const Scratch& scratch) {
        AttentionParams& attention = params.wgmma.attention;
        jitney::set_addresses(attention, args, choice, scratch.data, scratch.counters);
        if (params.map_first) jitney::set_addresses(params.map, attention);
        if (params.is_wgmma) {
            set_wgmma_addresses(params.wgmma, args, choice, params.addresses_lead,
                                scratch.counters);
        }
    }

    // A plan is for any lengths.
    static void leave_open(AttentionArgs& args) noexcept { args.qo_indptr_host = {}; }

    static void run_reference(const AttentionArgs& args) {
        reference::attention(reference_call(args));
    }
};

}  // namespace jitney
