// The form of a call: all its arguments but the addresses of its data. Calls of one form have the
// same checks, choice and launch, so that what was prepared for one serves the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "jitney/tensor.hpp"
#include "operations/call_fields.hpp"

namespace jitney {

// Equal but for the addresses, which are not null and agree in the bits of `alignment`. Runs on
// every call: no branch but the last. All members are named, so that one that is added does not
// compile until it is compared too.
inline bool same_form(const Tensor& a, const Tensor& b,
                      std::uintptr_t alignment = kAlignmentOfData) noexcept {
    const auto& [data, dtype, device, ndim, shape, strides] = b;
    auto differ = static_cast<std::uint64_t>(
        (reinterpret_cast<std::uintptr_t>(a.data) ^ reinterpret_cast<std::uintptr_t>(data)) &
        alignment);
    differ |= static_cast<std::uint64_t>(a.dtype != dtype || a.device != device || a.ndim != ndim);
    for (std::size_t i = 0; i < Tensor::max_dims; ++i) {
        differ |= static_cast<std::uint64_t>((a.shape[i] ^ shape[i]) | (a.strides[i] ^ strides[i]));
    }
    return (differ | static_cast<std::uint64_t>(a.data == nullptr || data == nullptr)) == 0;
}

inline bool same_form(const std::optional<Tensor>& a, const std::optional<Tensor>& b,
                      std::uintptr_t alignment = kAlignmentOfData) noexcept {
    return a.has_value() == b.has_value() && (!a || same_form(*a, *b, alignment));
}

template <class Value>
bool same_value(const Value& a, const Value& b) noexcept {
    if constexpr (kIsStruct<Value>) {
        const auto* const one = struct_in(a);
        const auto* const other = struct_in(b);
        if (one == nullptr || other == nullptr) return one == other;
        return all_fields<std::decay_t<decltype(*one)>>(
            [&](const auto& field) { return same_in(field, *one, *other); });
    } else if constexpr (requires { same_form(a, b); }) {
        return same_form(a, b);
    } else if constexpr (requires { a == b; }) {
        return a == b;
    } else {
        return std::ranges::equal(
            a, b, [](const auto& one, const auto& other) { return same_value(one, other); });
    }
}

// Of a field that may not differ.
template <class Field, class Args>
bool same_in(const Field& field, const Args& args, const Args& prepared) noexcept {
    if constexpr (Field::is_tensor) {
        return same_form(args.*field.member, prepared.*field.member, field.alignment);
    } else {
        return same_value(args.*field.member, prepared.*field.member);
    }
}

// A result is in the memory of its source where that of the prepared call was.
template <class Field, class Args>
bool same_place(const Field& field, const Args& args, const Args& prepared) noexcept {
    if constexpr (Field::is_tensor) {
        if (field.source == nullptr) return true;
        const Tensor* const out = tensor_in(args.*field.member);
        const Tensor* const in = tensor_in(args.*field.source);
        if (out == nullptr || in == nullptr) return true;
        return (in->data == out->data) ==
               (tensor_in(prepared.*field.source)->data == tensor_in(prepared.*field.member)->data);
    } else {
        return true;
    }
}

// The checks of `prepared` hold for `args` too, but for whether its tensors lie apart; and what
// was prepared for one is what the other asks for. `freedom`: what the two may differ in at least,
// Differs::in_calls where they are calls, in_runs where they are runs of one plan.
template <Differs freedom, class Args>
bool is_like(const Args& args, const Args& prepared) noexcept {
    return all_fields<Args>([&](const auto& field) {
        if constexpr (std::decay_t<decltype(field)>::differs >= freedom) {
            return field.sound(args, prepared);
        } else {
            return same_in(field, args, prepared) && same_place(field, args, prepared);
        }
    });
}

}  // namespace jitney
