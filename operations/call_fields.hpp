// The arguments of a call, listed once for all that walks over them: the form of a call, the memory
// of a call, what a plan's runs may differ in. A list is checked against its struct when it is
// compiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "jitney/problem.hpp"
#include "jitney/tensor.hpp"
#include "operations/field_text.hpp"

namespace jitney {

// What a call does with the memory of a tensor, or with those of a struct of tensors.
enum class Access {
    none,  // no tensor; or one of a struct, of which the struct's field says it
    read,
    written,
    updated,  // read and written, or written in part
    source,   // read, or worked on in place: a result names it
};

// Which calls may differ in a field and still share what was prepared for one of them. Calls of all
// kinds may differ in the addresses of their tensors.
enum class Differs {
    never,
    in_runs,   // those of one plan
    in_calls,  // and recent calls
};

// CallFields<Args>::all: a tuple of the fields, in the order of the members; `problem` and `sizes`,
// where it has them: arrays of the short forms of a problem (jitney/problem.hpp). A struct among
// the members has a list of its own, which comes before, with the names that sentences have for
// them.
template <class Args>
struct CallFields;

template <class Value>
concept HasFields = requires {
    CallFields<Value>::all;
};

template <class Value>
inline constexpr bool kIsStruct = HasFields<Value>;
template <class Value>
inline constexpr bool kIsStruct<std::optional<Value>> = HasFields<Value>;

// The bits of an address that a kernel may depend on.
inline constexpr std::uintptr_t kAlignmentOfData = 16 - 1;
inline constexpr std::uintptr_t kAlignmentOfNumbers = sizeof(float) - 1;

template <class Args, class Value, Differs where = Differs::never>
struct Field {
    static constexpr Differs differs = where;
    static constexpr bool is_tensor =
        std::is_same_v<Value, Tensor> || std::is_same_v<Value, std::optional<Tensor>>;
    static constexpr bool is_struct = kIsStruct<Value>;
    using Look = bool (*)(const Args& args, const Args& prepared) noexcept;
    using Condition = bool (*)(const Args& args) noexcept;

    const char* name;
    Value Args::*member;
    Access access = Access::none;
    const char* source_name = nullptr;
    Value Args::*source = nullptr;  // which the result may be written over
    // Of a field that may differ: whether its value in a call is one that the check of the call
    // would accept; if not, the call goes through that check. Each call has its look.
    Look sound = nullptr;
    Condition writes = nullptr;  // where not null: the calls that write it; others read it
    std::uintptr_t alignment = kAlignmentOfData;

    // A field that may differ can't be declared without the look at its value.
    template <Differs others>
    constexpr Field<Args, Value, others> may_differ(Look look) const noexcept {
        return {name, member, access, source_name, source, look, writes, alignment};
    }
    constexpr Field only_where(Condition condition) const noexcept {
        Field field = *this;
        field.writes = condition;
        return field;
    }
    // Kernels read its elements, which are fp32, one at a time.
    constexpr Field as_numbers() const noexcept {
        Field field = *this;
        field.alignment = kAlignmentOfNumbers;
        return field;
    }

    // What it is to who reads the list, and the members of the C struct that it stands in: the last
    // that is said of a field.
    template <class... CMembers>
    constexpr Told<Field, CMembers...> told(const char* meaning, const FieldText& text,
                                            CMembers... c) const noexcept {
        return {*this, meaning, text, {c...}};
    }
    template <class... CMembers>
    constexpr Told<Field, CMembers...> told(const char* meaning, CMembers... c) const noexcept {
        return {*this, meaning, {}, {c...}};
    }

    constexpr Access access_in(const Args& args) const noexcept {
        return writes == nullptr || writes(args) ? access : Access::read;
    }
};

namespace fields {

template <class Args, class Value>
constexpr Field<Args, Value> plain(const char* name, Value Args::*member) noexcept {
    return {name, member};
}
template <class Args, class Value>
constexpr Field<Args, Value> read(const char* name, Value Args::*member) noexcept {
    return {name, member, Access::read};
}
template <class Args, class Value>
constexpr Field<Args, Value> written(const char* name, Value Args::*member) noexcept {
    return {name, member, Access::written};
}
template <class Args, class Value>
constexpr Field<Args, Value> updated(const char* name, Value Args::*member) noexcept {
    return {name, member, Access::updated};
}
template <class Args, class Value>
constexpr Field<Args, Value> source(const char* name, Value Args::*member) noexcept {
    return {name, member, Access::source};
}
// In the memory of the source, or apart from it.
template <class Args, class Value>
constexpr Field<Args, Value> result(const char* name, Value Args::*member, const char* source_name,
                                    Value Args::*source) noexcept {
    return {name, member, Access::written, source_name, source};
}

// In problems where the condition holds, calls have these tensors.
constexpr ProblemOption where(const char* condition, const char* gives) noexcept {
    return {.name = "", .says = ProblemOption::Says::nothing, .of = condition, .gives = gives};
}
// An option that says nothing without another.
constexpr ProblemOption with(const char* condition, const char* otherwise,
                             ProblemOption option) noexcept {
    option.with = condition;
    option.otherwise = otherwise;
    return option;
}

}  // namespace fields

template <class Args, class Visit>
constexpr void for_each_field(const Visit& visit) {
    std::apply([&visit](const auto&... fields) { (visit(fields), ...); }, CallFields<Args>::all);
}

// Whether `test` holds for all fields.
template <class Args, class Test>
constexpr bool all_fields(const Test& test) {
    return std::apply([&test](const auto&... fields) { return (test(fields) && ...); },
                      CallFields<Args>::all);
}

// Null where it is left out.
inline const Tensor* tensor_in(const Tensor& tensor) noexcept {
    return &tensor;
}
inline const Tensor* tensor_in(const std::optional<Tensor>& tensor) noexcept {
    return tensor ? &*tensor : nullptr;
}
inline Tensor* tensor_in(Tensor& tensor) noexcept {
    return &tensor;
}
inline Tensor* tensor_in(std::optional<Tensor>& tensor) noexcept {
    return tensor ? &*tensor : nullptr;
}

// Null where it is left out.
template <HasFields Value>
constexpr const Value* struct_in(const Value& value) noexcept {
    return &value;
}
template <HasFields Value>
constexpr Value* struct_in(Value& value) noexcept {
    return &value;
}
template <HasFields Value>
constexpr const Value* struct_in(const std::optional<Value>& value) noexcept {
    return value ? &*value : nullptr;
}
template <HasFields Value>
constexpr Value* struct_in(std::optional<Value>& value) noexcept {
    return value ? &*value : nullptr;
}

// A tensor of a call, as the lists have it.
struct ListedTensor {
    const char* name;
    Access access;  // of this call
    Differs differs;
    const char* source_name = nullptr;
    const Tensor* source = nullptr;  // null where the call has none
};

// `visit(listed, tensor)` for each tensor that the call has, those of its structs among them.
template <class Args, class Visit>
constexpr void for_each_tensor(Args& args, const Visit& visit) {
    for_each_field<std::remove_const_t<Args>>([&](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (Field::is_tensor) {
            auto* const tensor = tensor_in(args.*field.member);
            if (tensor == nullptr) return;
            const Tensor* const source =
                field.source != nullptr ? tensor_in(args.*field.source) : nullptr;
            visit(ListedTensor{field.name, field.access_in(args), Field::differs, field.source_name,
                               source},
                  *tensor);
        } else if constexpr (Field::is_struct) {
            auto* const part = struct_in(args.*field.member);
            if (part == nullptr) return;
            for_each_tensor(*part, [&](ListedTensor listed, auto& tensor) {
                listed.access = field.access_in(args);
                visit(listed, tensor);
            });
        }
    });
}

template <class Args>
inline constexpr Args kNoCall{};

// A member of any type, of which brace initialization can be asked how many it takes.
struct AnyMember {
    template <class Value>
    operator Value() const noexcept;
};

template <class Args, std::size_t... i>
constexpr bool has_members(std::index_sequence<i...>) {
    return requires {
        Args{(static_cast<void>(i), AnyMember{})...};
    };
}

template <class Args, std::size_t count = 0>
constexpr std::size_t members_of() {
    if constexpr (has_members<Args>(std::make_index_sequence<count + 1>{})) {
        return members_of<Args, count + 1>();
    } else {
        return count;
    }
}

// Whether each member of the struct is one field of its list: one that is added to the struct does
// not compile until it is listed, and so compared.
template <class Args>
constexpr bool lists_all_members() {
    constexpr std::size_t count = std::tuple_size_v<decltype(CallFields<Args>::all)>;
    const auto places = std::apply(
        [](const auto&... field) {
            return std::array<const void*, count>{&(kNoCall<Args>.*field.member)...};
        },
        CallFields<Args>::all);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (places[i] == places[j]) return false;
        }
    }
    return count == members_of<Args>();
}

}  // namespace jitney
