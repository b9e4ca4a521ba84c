#include "operations/attention/check_plan.hpp"

#include <array>

#include "operations/attention/fields.hpp"
#include "operations/call_form.hpp"
#include "operations/check.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

void check_like(const char* name, const Tensor& given, const Tensor& planned, bool sized_anew) {
    if (given.dtype != planned.dtype) {
        refuse("{} has the dtype {}, and the plan was made for {}: make a plan for such calls",
               name, name_of(given.dtype), name_of(planned.dtype));
    }
    if (!is_same_place(given.device, planned.device)) {
        refuse("{} is in {}, and the plan was made for {}: make a plan there", name,
               text_of(given.device), text_of(planned.device));
    }
    std::array<std::int64_t, Tensor::max_dims> shape = given.shape;
    if (sized_anew) shape[0] = planned.shape[0];
    if (given.ndim != planned.ndim || shape != planned.shape) {
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

template <class Field>
void check_field(const Field& field, const AttentionArgs& args, const AttentionArgs& planned) {
    const auto& given = args.*field.member;
    const auto& was = planned.*field.member;
    if constexpr (Field::is_tensor) {
        const Tensor* const tensor = tensor_in(given);
        const Tensor* const other = tensor_in(was);
        check_given(field.name, tensor != nullptr, other != nullptr);
        if (tensor == nullptr) return;
        check_like(field.name, *tensor, *other, Field::differs != Differs::never);
    } else if constexpr (Field::differs == Differs::never) {
        if (same_value(given, was)) return;
        refuse("{} is not what it was when the plan was made: make a plan for such calls",
               field.name);
    }
}

}  // namespace

void check_planned(const AttentionArgs& args, const AttentionArgs& planned, bool aligned) {
    const policy::AttentionProblem problem = check(args);
    for_each_field<AttentionArgs>([&](const auto& field) { check_field(field, args, planned); });
    if (aligned && !problem.aligned) {
        refuse(
            "the plan's kernel reads 16 bytes at a time, and a tensor of the call does not begin "
            "at a multiple of that: align it, or make the plan with tensors that begin like it");
    }
}

}  // namespace jitney::checks
