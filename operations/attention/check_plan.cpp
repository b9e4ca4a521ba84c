#include "operations/attention/check_plan.hpp"

#include "operations/attention/fields.hpp"
#include "operations/call_form.hpp"
#include "operations/check.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

void check_like(const char* name, const Tensor& given, const Tensor& planned) {
    if (given.dtype != planned.dtype) {
        refuse("{} has the dtype {}, and the plan was made for {}: make a plan for such calls",
               name, name_of(given.dtype), name_of(planned.dtype));
    }
    if (given.device != planned.device) {
        refuse("{} is in {}, and the plan was made for {}: make a plan there", name,
               text_of(given.device), text_of(planned.device));
    }
    if (given.ndim != planned.ndim || given.shape != planned.shape) {
        refuse("{} has the shape {}, and the plan was made for {}: make a plan for such calls",
               name, shape_text(given), shape_text(planned));
    }
    if (is_empty(given)) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(given.ndim); ++i) {
        if (given.shape[i] <= 1 || given.strides[i] == planned.strides[i]) continue;
        refuse("{} has the strides {}, and the plan was made for {}: make a plan for such calls",
               name, strides_text(given), strides_text(planned));
    }
}

void check_given(const char* name, bool given, bool planned) {
    if (given == planned) return;
    refuse("{} was {}, and the plan was made {} it: make a plan for such calls", name,
           given ? "given" : "left out", planned ? "with" : "without");
}

template <class Value>
void check_equal(const char* name, const Value& given, const Value& planned) {
    if (given == planned) return;
    refuse("{} is not what it was when the plan was made: make a plan for such calls", name);
}

// What a plan lets differ, as the plan has it.
AttentionArgs in_the_plans_place(const AttentionArgs& args, const AttentionArgs& planned) {
    AttentionArgs result = args;
    for (const TensorField& field : kTensorFields)
        result.*field.member = planned.*field.member;
    for (const OptionalTensorField& field : kOptionalTensorFields)
        result.*field.member = planned.*field.member;
    return result;
}

}  // namespace

void check_planned(const AttentionArgs& args, const AttentionArgs& planned, bool aligned) {
    const policy::AttentionProblem problem = check(args);
    for (const TensorField& field : kTensorFields)
        check_like(field.name, args.*field.member, planned.*field.member);
    for (const OptionalTensorField& field : kOptionalTensorFields) {
        const std::optional<Tensor>& given = args.*field.member;
        const std::optional<Tensor>& was = planned.*field.member;
        check_given(field.name, given.has_value(), was.has_value());
        if (!given) continue;
        Tensor tensor = *given;
        if (field.member == &AttentionArgs::kv_page_indices) tensor.shape[0] = was->shape[0];
        check_like(field.name, tensor, *was);
    }
    check_equal("causal", args.causal, planned.causal);
    check_equal("scale", args.scale, planned.scale);
    check_equal("window_left", args.window_left, planned.window_left);
    check_equal("window_right", args.window_right, planned.window_right);
    check_equal("softcap", args.softcap, planned.softcap);
    check_equal("batch_invariant", args.batch_invariant, planned.batch_invariant);
    if (aligned && !problem.aligned) {
        refuse(
            "the plan's kernel reads 16 bytes at a time, and a tensor of the call does not begin "
            "at a multiple of that: align it, or make the plan with tensors that begin like it");
    }
    if (!same_form(in_the_plans_place(args, planned), planned, Lengths::any)) {
        refuse(
            "the call is not of the form that the plan was made for: make a plan for such "
            "calls");
    }
}

}  // namespace jitney::checks
