// Casts to FP8 as the path of all calls takes them.
#pragma once

#include "operations/check.hpp"
#include "operations/decision.hpp"
#include "operations/fp8_quantize/choose.hpp"
#include "operations/fp8_quantize/fields.hpp"
#include "operations/fp8_quantize/fill.hpp"
#include "operations/fp8_quantize/reference.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/operation.hpp"

namespace jitney {

// Nothing to read; what is asked of it is defined all the same, and the driver writes it.
inline void set_numbers_of_nothing(const Fp8QuantizeArgs& args, Stream stream) {
    if (args.granularity != Fp8Granularity::tensor) return;
    set_number(args.amax, 0.0f, stream);
    if (args.dynamic) set_number(args.multiplier, 1.0f, stream);
    set_number(args.scale, 1.0f, stream);
}

// `state` and `by_scale`: as of reference::Fp8Quantize.
void quantize_on_host(const Fp8QuantizeArgs& args, float* state = nullptr, bool by_scale = false);

template <>
struct OperationOf<Fp8QuantizeArgs> {
    using Problem = policy::Fp8QuantizeProblem;
    using Choice = policy::Fp8CastChoice;

    static constexpr std::string_view name = "fp8_quantize";
    static constexpr std::string_view otherwise = "use another GPU, or host tensors";

    struct Params {
        Fp8CastParams cast;
        bool amax_first = false;
        bool makes_scales = false;
        void* of(std::size_t step) noexcept {
            if (makes_scales) return &cast.scales;
            return amax_first && step == 0 ? &cast.amax : &cast.codes;
        }
    };

    static const Device& device(const Fp8QuantizeArgs& args) noexcept { return args.x.device; }
    static Problem check(const Fp8QuantizeArgs& args, checks::Data data) {
        return checks::check(args, data);
    }
    static bool has_no_rows(const Problem& problem) noexcept {
        return policy::has_no_rows(problem);
    }

    static Ranking<Choice> rank(const Problem& problem, const policy::DeviceFacts& facts,
                                std::optional<policy::KernelId> kernel) {
        return policy::rank_fp8_quantize(problem, facts, kernel);
    }
    static Steps steps(const Choice& choice) noexcept {
        if (choice.scales) return {{choice.scales->spec, choice.scales->geometry}};
        Steps steps;
        if (choice.amax) steps.add({choice.amax->spec, choice.amax->geometry});
        steps.add({choice.codes.spec, choice.codes.geometry});
        return steps;
    }
    static ScratchBytes scratch(const Choice& choice) noexcept {
        return {choice.counter_bytes, choice.multiplier_bytes};
    }

    static Params fill(const Fp8QuantizeArgs& args, const Problem&, const Choice& choice) {
        return {form_params(args, choice), choice.amax.has_value(), choice.scales.has_value()};
    }
    static void set_addresses(Params& params, const Fp8QuantizeArgs& args, const Choice& choice,
                              const Scratch& scratch) noexcept {
        jitney::set_addresses(params.cast, args, choice, scratch);
    }

    static void run_empty(const Fp8QuantizeArgs& args, const Problem&, Backend backend,
                          Stream stream) {
        if (backend == Backend::reference) return run_reference(args);
        enter_device(args.x.device);
        set_numbers_of_nothing(args, stream);
    }
    static void run_reference(const Fp8QuantizeArgs& args) { quantize_on_host(args); }
};

}  // namespace jitney
