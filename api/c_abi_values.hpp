// Members of the C structs as the values that they stand for: a form for each type of field and the
// members that it is told by. They throw Error(invalid_argument), which calls the field `name`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "api/c_abi_tensor.hpp"
#include "jitney/attention.hpp"
#include "jitney/jitney.h"
#include "jitney/merge_states.hpp"
#include "operations/call_fields.hpp"

namespace jitney::c_abi {

// The elements that lists among the arguments show.
struct Lists {
    std::optional<std::array<PartialState, 16>> parts;
};

inline void take(Tensor& value, const char* name, Lists&, const DLTensor* given) {
    value = required(given, name);
}
inline void take(std::optional<Tensor>& value, const char* name, Lists&, const DLTensor* given) {
    value = optional(given, name);
}
inline void take(bool& value, const char*, Lists&, std::int32_t given) {
    value = given != 0;
}
inline void take(int& value, const char*, Lists&, std::int32_t given) {
    value = given;
}
inline void take(float& value, const char*, Lists&, float given) {
    value = given;
}
// 0 leaves a number out that may be.
template <class Number>
void take(std::optional<Number>& value, const char*, Lists&, Number given) {
    if (given != 0) value = given;
}
// Numbers that are none of the enumerators are the operation's to refuse.
template <class Enum>
requires std::is_enum_v<Enum>
void take(Enum& value, const char*, Lists&, std::int32_t given) {
    value = static_cast<Enum>(given);
}
inline void take(Workspace& value, const char*, Lists&, void* data, std::size_t bytes) {
    value = {data, bytes};
}

// A bound of which 0 can be meant.
void take(int& value, const char* name, Lists&, std::int32_t has_bounds, std::int32_t bound);
// As many numbers as the tensor has.
void take(std::span<const int>& value, const char* name, Lists&, const std::int32_t* given,
          const DLTensor* tensor);
void take(std::span<const PartialState>& value, const char* name, Lists& lists,
          const jitney_partial_state* given, std::size_t count);
void take(LogitsFunction& value, const char* name, Lists&, const jitney_logits_function* given);
void take(LogitsValues& value, const char* name, Lists&, const jitney_logits_value (&given)[4],
          const jitney_logits_function* function);

// A struct that has one in C.
template <HasFields Value>
void take(Value& value, const char*, Lists& lists, const typename CallFields<Value>::C& given) {
    for_each_field<Value>([&](const auto& field) {
        std::apply(
            [&](auto... members) {
                take(value.*field.member, field.name, lists, given.*members...);
            },
            field.c);
    });
}
// A struct of tensors that C has as they are, each given.
template <HasFields Value, class... Given>
requires(std::is_same_v<Given, const DLTensor*>&&...) &&
    (std::tuple_size_v<decltype(CallFields<Value>::all)> ==
     sizeof...(Given)) void take(Value& value, const char*, Lists& lists, Given... given) {
    std::apply(
        [&](const auto&... field) {
            (take(value.*field.member, plain_name(field.name), lists, given), ...);
        },
        CallFields<Value>::all);
}
// All of them, or none.
template <HasFields Value, class... Given>
void take(std::optional<Value>& value, const char* name, Lists& lists, Given... given) {
    if (((given != nullptr) || ...)) take(value.emplace(), name, lists, given...);
}

}  // namespace jitney::c_abi
