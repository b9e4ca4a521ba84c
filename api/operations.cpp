#include "jitney/operations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/c_abi_arguments.hpp"
#include "api/json_text.hpp"
#include "jitney/explain.hpp"
#include "operations/all_fields.hpp"
#include "operations/check.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/last_run.hpp"
#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"
#include "policy/kernels.hpp"

namespace jitney {
namespace {

using Kind = OperationField::Kind;
using Use = OperationField::Use;

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('|', start), text.size());
        parts.emplace_back(text.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

template <class Value>
struct Inner {
    using type = Value;
    static constexpr bool optional = false;
};
template <class Value>
struct Inner<std::optional<Value>> {
    using type = Value;
    static constexpr bool optional = true;
};

template <class Value>
constexpr Kind kind_of() {
    using Type = typename Inner<Value>::type;
    if constexpr (std::is_same_v<Type, Tensor>) {
        return Kind::tensor;
    } else if constexpr (std::is_same_v<Type, bool>) {
        return Kind::flag;
    } else if constexpr (std::is_enum_v<Type>) {
        return Kind::word;
    } else if constexpr (std::is_integral_v<Type>) {
        return Kind::integer;
    } else if constexpr (std::is_floating_point_v<Type>) {
        return Kind::number;
    } else if constexpr (std::is_same_v<Type, std::span<const int>>) {
        return Kind::host_copy;
    } else if constexpr (std::is_same_v<Type, LogitsFunction>) {
        return Kind::logits;
    } else if constexpr (std::is_same_v<Type, LogitsValues>) {
        return Kind::logits_values;
    } else if constexpr (std::is_same_v<Type, Workspace>) {
        return Kind::workspace;
    } else {
        return Kind::list;
    }
}

template <class Member>
const char* c_type() {
    if constexpr (std::is_same_v<Member, const DLTensor*>) {
        return "tensor";
    } else if constexpr (std::is_same_v<Member, std::int32_t>) {
        return "int32";
    } else if constexpr (std::is_same_v<Member, std::int64_t>) {
        return "int64";
    } else if constexpr (std::is_same_v<Member, float>) {
        return "fp32";
    } else if constexpr (std::is_same_v<Member, std::size_t>) {
        return "size";
    } else if constexpr (std::is_same_v<Member, const jitney_partial_state*>) {
        return "structs";
    } else if constexpr (std::is_array_v<Member>) {
        return "logits_values";
    } else {
        static_assert(std::is_pointer_v<Member>);
        return "pointer";
    }
}

template <class C, class Member>
CMember c_member(Member C::*member, std::size_t offset) {
    return {c_type<Member>(), offset + c_abi::place_of(member).offset};
}

Use use_of(Access access) {
    switch (access) {
        case Access::written:
            return Use::written;
        case Access::updated:
            return Use::updated;
        case Access::read:
        case Access::source:
            return Use::read;
        case Access::none:
            break;
    }
    return Use::none;
}

template <class Value>
std::string default_of(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>) {
        return fmt::format("{}", value);
    } else {
        return {};
    }
}

// One that is no struct of fields.
template <class Field, class Value>
OperationField described(const Field& field, const Value& value, std::size_t offset) {
    OperationField told;
    told.name = plain_name(field.name);
    told.kind = kind_of<Value>();
    told.use = use_of(field.access);
    told.optional = Inner<Value>::optional;
    told.meaning = field.meaning;
    told.shape = field.text.shape;
    told.dtypes = split(field.text.dtypes);
    told.like = field.text.like;
    told.when = field.text.when;
    told.read_else = field.writes != nullptr;
    told.words = split(field.text.words);
    told.option = field.text.option;
    told.file = field.text.file;
    told.default_value = default_of(value);
    if constexpr (std::is_enum_v<Value>) {
        told.default_value = told.words.at(static_cast<std::size_t>(value));
    }
    std::apply([&](auto... members) { told.c = {c_member(members, offset)...}; }, field.c);
    return told;
}

template <class Args>
void describe(std::vector<OperationField>& all, std::size_t offset);

// A struct's own fields, in the members of a struct in C, or each in one of the members.
template <class Struct, class Field>
void describe_struct(std::vector<OperationField>& all, const Field& field, std::size_t offset) {
    if constexpr (requires { typename CallFields<Struct>::C; }) {
        describe<Struct>(all, offset + c_abi::place_of(std::get<0>(field.c)).offset);
    } else {
        std::size_t at = all.size();
        describe<Struct>(all, 0);
        const auto complete = [&](auto member) {
            OperationField& told = all[at++];
            told.c = {c_member(member, offset)};
            told.use = use_of(field.access);
            told.optional = field.access == Access::written;
            told.group = plain_name(field.name);
            told.when = field.text.when;
            told.option = field.text.option;
        };
        std::apply([&](auto... members) { (complete(members), ...); }, field.c);
    }
}

template <class Args>
void describe(std::vector<OperationField>& all, std::size_t offset) {
    for_each_field<Args>([&](const auto& field) {
        const auto& value = kNoCall<Args>.*field.member;
        using Value = std::remove_cvref_t<decltype(value)>;
        using Type = typename Inner<Value>::type;
        if constexpr (HasFields<Type>) {
            describe_struct<Type>(all, field, offset);
        } else {
            all.push_back(described(field, value, offset));
            if constexpr (std::is_same_v<Type, std::span<const PartialState>>) {
                describe<PartialState>(all.back().elements, 0);
                for (OperationField& element : all.back().elements)
                    element.name = fmt::format("{}.{}", field.name, element.name);
            }
        }
    });
}

std::vector<std::string> kernels_of(std::string_view call) {
    std::vector<std::string> names;
    for (const policy::KernelInfo& kernel : policy::kernels()) {
        if (!kernel.helper && kernel.operation == call) names.emplace_back(kernel.name);
    }
    return names;
}

// What is made of an operation's line in the list of all.
struct Entry {
    OperationInfo info;
    void (*run)(const void* args, Stream stream);
    std::string (*explain)(const void* args, std::string_view arch);
    void (*check)(const void* args);
};

template <class Args>
OperationInfo info_of(std::string_view name, std::string_view call) {
    OperationInfo info;
    info.name = name;
    info.does = CallFields<Args>::does;
    info.c_function = fmt::format("jitney_{}", call);
    info.c_struct = fmt::format("jitney_{}_args", name);
    info.c_bytes = sizeof(typename CallFields<Args>::C);
    info.kernels = kernels_of(call);
    if constexpr (requires { CallFields<Args>::problem; }) info.problem = CallFields<Args>::problem;
    if constexpr (requires { CallFields<Args>::sizes; }) info.sizes = CallFields<Args>::sizes;
    describe<Args>(info.fields, 0);
    return info;
}

template <class Args>
void check_all(const Args& args) {
    checks::check(args);
    if constexpr (requires { CallFields<Args>::check_values(args); }) {
        CallFields<Args>::check_values(args);
    }
}

const std::vector<Entry>& entries() {
#define JITNEY_GIVEN(name, Args) \
    JITNEY_C_ARGUMENTS(name, Args, static_cast<const jitney_##name##_args*>(args))
#define JITNEY_ENTRY(name, call, Args)                                                        \
    {info_of<Args>(#name, #call),                                                             \
     [](const void* args, Stream stream) { jitney::call(JITNEY_GIVEN(name, Args), stream); }, \
     [](const void* args, std::string_view arch) {                                            \
         return json_of(explain(JITNEY_GIVEN(name, Args), arch));                             \
     },                                                                                       \
     [](const void* args) { check_all(JITNEY_GIVEN(name, Args)); }},
    static const std::vector<Entry> all = {JITNEY_FOR_EACH_OPERATION(JITNEY_ENTRY)};
#undef JITNEY_ENTRY
#undef JITNEY_GIVEN
    return all;
}

const Entry& entry_of(std::string_view name) {
    std::string known;
    for (const Entry& entry : entries()) {
        if (entry.info.name == name) return entry;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.info.name);
    }
    checks::refuse("there is no operation \"{}\"; there are {}", name, known);
}

const char* name_of(Kind kind) {
    constexpr std::array names = {"tensor", "flag",      "integer", "number",        "word",
                                  "list",   "host_copy", "logits",  "logits_values", "workspace"};
    return names.at(static_cast<std::size_t>(kind));
}

const char* name_of(Use use) {
    constexpr std::array names = {"none", "read", "written", "updated"};
    return names.at(static_cast<std::size_t>(use));
}

std::string json_of(const OperationField& field) {
    const std::string c = json_list(field.c, [](const CMember& member) {
        return fmt::format(R"({{"type":{},"offset":{}}})", quoted(member.type), member.offset);
    });
    const std::string elements =
        json_list(field.elements, [](const OperationField& element) { return json_of(element); });
    return fmt::format(
        R"({{"name":{},"kind":"{}","use":"{}","optional":{},"group":{},"meaning":{},"shape":{},)"
        R"("dtypes":{},"like":{},"when":{},"read_else":{},"words":{},"default":{},"option":{},)"
        R"("file":{},"c":{},"elements":{}}})",
        quoted(field.name), name_of(field.kind), name_of(field.use), field.optional,
        quoted(field.group), quoted(field.meaning), quoted(field.shape), quoted_list(field.dtypes),
        quoted(field.like), quoted(field.when), field.read_else, quoted_list(field.words),
        field.default_value.empty() ? "null" : quoted(field.default_value), quoted(field.option),
        quoted(field.file), c, elements);
}

std::string json_of(const OperationInfo& info) {
    const std::string fields =
        json_list(info.fields, [](const OperationField& field) { return json_of(field); });
    return fmt::format(
        R"({{"name":{},"does":{},"c_function":{},"c_struct":{},"c_bytes":{},"kernels":{},)"
        R"("fields":{}}})",
        quoted(info.name), quoted(info.does), quoted(info.c_function), quoted(info.c_struct),
        info.c_bytes, quoted_list(info.kernels), fields);
}

}  // namespace

const std::vector<OperationInfo>& operations() {
    static const std::vector<OperationInfo> all = [] {
        std::vector<OperationInfo> infos;
        for (const Entry& entry : entries())
            infos.push_back(entry.info);
        return infos;
    }();
    return all;
}

std::string operations_json() {
    return fmt::format(
        R"({{"version":{},"operations":{}}})", quoted(jitney_version()),
        json_list(operations(), [](const OperationInfo& info) { return json_of(info); }));
}

void run_operation(std::string_view name, const void* args, Stream stream) {
    note_nothing_ran();
    entry_of(name).run(args, stream);
}

std::string explain_operation(std::string_view name, const void* args, std::string_view arch) {
    return entry_of(name).explain(args, arch);
}

std::vector<LogitsParameter> parameters_of(const LogitsFunction& function) {
    std::vector<LogitsParameter> declared;
    if (const detail::LogitsRecord* const record = LogitsAccess::record(function)) {
        for (const auto& parameter : record->parameters)
            declared.push_back({parameter.type, parameter.name, parameter.kind});
    }
    return declared;
}

const void* c_function_of(const LogitsFunction& function) noexcept {
    return LogitsAccess::record(function);
}

void check_operation(std::string_view name, const void* args) {
    entry_of(name).check(args);
}

}  // namespace jitney
