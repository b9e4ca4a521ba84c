// Whether a call is one that a plan was made for: a closer look, where a run differs from the
// plan's call. Walks over the list of fields.
#pragma once

#include <string>
#include <type_traits>

#include "operations/call_fields.hpp"
#include "operations/call_form.hpp"
#include "operations/operation.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

[[noreturn]] void refuse_no_plan();
[[noreturn]] void refuse_other_value(const std::string& name);
[[noreturn]] void refuse_other_count(const std::string& name, std::size_t given,
                                     std::size_t planned);
[[noreturn]] void refuse_unaligned();
void check_given(const std::string& name, bool given, bool planned);
// All but the address, and the first size where it may be another.
void check_like(const std::string& name, const Tensor& given, const Tensor& planned,
                bool sized_anew);
// A result takes the place of its source where the plan's did.
void check_placed(const std::string& name, const std::string& source_name, bool in_place,
                  bool planned);

// `before`: what stands before the names of the list.
template <class Args>
void check_fields(const std::string& before, const Args& args, const Args& planned);

template <class Field, class Args>
void check_field(const std::string& name, const Field& field, const Args& args,
                 const Args& planned) {
    const auto& given = args.*field.member;
    const auto& was = planned.*field.member;
    if constexpr (Field::is_tensor) {
        const Tensor* const tensor = tensor_in(given);
        const Tensor* const other = tensor_in(was);
        check_given(name, tensor != nullptr, other != nullptr);
        if (tensor == nullptr) return;
        check_like(name, *tensor, *other, Field::differs != Differs::never);
        if (field.source == nullptr) return;
        const Tensor* const source = tensor_in(args.*field.source);
        const Tensor* const other_source = tensor_in(planned.*field.source);
        if (source == nullptr || other_source == nullptr) return;
        check_placed(name, field.source_name, tensor->data == source->data,
                     other->data == other_source->data);
    } else if constexpr (Field::is_struct) {
        const auto* const part = struct_in(given);
        const auto* const other = struct_in(was);
        check_given(name, part != nullptr, other != nullptr);
        if (part != nullptr) check_fields("", *part, *other);
    } else if constexpr (Field::differs != Differs::never) {
        return;  // the check of the call has looked at it
    } else if constexpr (requires { requires HasFields<std::decay_t<decltype(given[0])>>; }) {
        if (given.size() != was.size()) refuse_other_count(name, given.size(), was.size());
        for (std::size_t i = 0; i < given.size(); ++i)
            check_fields(name + '[' + std::to_string(i) + "].", given[i], was[i]);
    } else if (!same_value(given, was)) {
        refuse_other_value(name);
    }
}

template <class Args>
void check_fields(const std::string& before, const Args& args, const Args& planned) {
    for_each_field<Args>(
        [&](const auto& field) { check_field(before + field.name, field, args, planned); });
}

// Throws Error with what differs, and returns where the plan can run the call all the same. On a
// GPU its kernels may move several elements at once.
template <class Args>
void check_planned(const Args& args, const Args& planned,
                   const typename OperationOf<Args>::Problem& planned_problem, bool on_gpu) {
    const auto problem = OperationOf<Args>::check(args, Data::present);
    check_fields("", args, planned);
    if (on_gpu && !as_aligned(problem, planned_problem)) refuse_unaligned();
}

}  // namespace jitney::checks
