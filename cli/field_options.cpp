#include "cli/field_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"

namespace jitney::cli {

using Kind = OperationField::Kind;
using Use = OperationField::Use;

std::optional<DType> dtype_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, DType>, 8> all = {{
        {"fp32", DType::fp32},
        {"fp16", DType::fp16},
        {"bf16", DType::bf16},
        {"e4m3", DType::fp8_e4m3},
        {"e5m2", DType::fp8_e5m2},
        {"bool", DType::boolean},
        {"int32", DType::int32},
        {"int64", DType::int64},
    }};
    for (const auto& [each, dtype] : all) {
        if (each == name) return dtype;
    }
    return std::nullopt;
}

std::string option_of(std::string_view field) {
    std::string option = fmt::format("--{}", field);
    std::ranges::replace(option, '_', '-');
    return option;
}

namespace {

// With its other name, where it has one.
std::string names_of(std::string_view name, std::string_view other) {
    const std::string option = option_of(name);
    if (other.empty() || option_of(other) == option) return option;
    return fmt::format("{},{}", option_of(other), option);
}

std::string described(const OperationField& field, std::string_view otherwise) {
    return otherwise.empty() ? field.meaning : fmt::format("{} ({})", field.meaning, otherwise);
}

// 0 says in C that a number which may be left out is.
std::int64_t least_of(const OperationField& field) {
    if (field.optional) return 1;
    return std::min<std::int64_t>(0, std::stoll(field.default_value));
}

}  // namespace

void FieldOptions::add(CLI::App& command, const OperationField& field) {
    if (command.get_option_no_throw(option_of(field.name)) != nullptr) return;
    const std::string names = names_of(field.name, field.option);
    const std::string description = described(field, field.default_value);
    const std::string& name = field.name;
    if (field.kind == Kind::flag) {
        command.add_flag_function(
            names, [this, name](std::int64_t) { flags_.insert(name); }, field.meaning);
    } else if (field.kind == Kind::integer) {
        const std::int64_t least = least_of(field);
        add_value(command, names, "N", description,
                  [=, this](const std::string& option, const std::string& text) {
                      integers_[name] =
                          parse_integer(option, text, least, std::numeric_limits<int>::max());
                  });
    } else if (field.kind == Kind::number) {
        constexpr double most = std::numeric_limits<float>::max();
        const double least = field.optional ? std::numeric_limits<float>::denorm_min() : -most;
        add_value(command, names, "X", description,
                  [=, this](const std::string& option, const std::string& text) {
                      numbers_[name] = parse_real(option, text, least, most);
                  });
    } else if (field.kind == Kind::word) {
        add_choice(command, names, field.words, description, [this, name](std::size_t place) {
            integers_[name] = static_cast<std::int64_t>(place);
        });
    } else if (field.kind == Kind::logits) {
        logits_.add_to(command,
                       "Edit the scores by the logits function in this file, whose parameters are "
                       "tensors of IN called like them");
    }
}

void FieldOptions::add_result(CLI::App& command, const OperationField& field) {
    const bool asked = field.optional && field.when.empty();
    const std::string& name = field.group.empty() ? field.name : field.group;
    if (asked && command.get_option_no_throw(option_of(name)) == nullptr &&
        (field.option.empty() || command.get_option_no_throw(option_of(field.option)) == nullptr)) {
        command.add_flag_function(
            names_of(name, field.option), [this, name](std::int64_t) { flags_.insert(name); },
            field.group.empty() ? "Give it, too: " + field.meaning : "Give what backward needs");
    }
    if (field.dtypes.size() < 2 || !field.group.empty()) return;
    add_choice(command, names_of(field.name + "_format", asked ? "" : field.option), field.dtypes,
               fmt::format("Format of {} ({})", field.name,
                           field.like.empty() ? field.dtypes.front() : "that of " + field.like),
               [this, key = field.name, words = field.dtypes](std::size_t place) {
                   dtypes_[key] = words[place];
               });
}

void FieldOptions::add_to(CLI::App& command) {
    for (const OperationField& field : operation_.fields) {
        add(command, field);
        if (field.use == Use::written) add_result(command, field);
    }
}

bool FieldOptions::holds(std::string_view condition) const {
    const std::size_t equals = condition.find('=');
    if (equals != condition.npos) {
        const std::string_view field = condition.substr(0, equals);
        const std::string_view value = condition.substr(equals + 1);
        return word(field) == value || dtype_of_result(field) == value;
    }
    return flags_.contains(condition) || integers_.contains(condition) ||
           numbers_.contains(condition);
}

std::optional<std::int64_t> FieldOptions::integer(const OperationField& field) const {
    if (const auto given = integers_.find(field.name); given != integers_.end()) {
        return given->second;
    }
    if (field.kind == Kind::word) {
        return std::ranges::find(field.words, field.default_value) - field.words.begin();
    }
    if (field.kind != Kind::integer || field.default_value.empty()) return std::nullopt;
    return std::stoll(field.default_value);
}

std::string FieldOptions::word(std::string_view name) const {
    for (const OperationField& field : operation_.fields) {
        if (field.name == name && field.kind == Kind::word) {
            return field.words.at(static_cast<std::size_t>(*integer(field)));
        }
    }
    return {};
}

std::string FieldOptions::dtype_of_result(std::string_view field) const {
    const auto given = dtypes_.find(field);
    return given == dtypes_.end() ? std::string() : given->second;
}

void FieldOptions::set(CCall& call, const OperationInfo& operation) const {
    for (const OperationField& field : operation.fields) {
        if (field.kind == Kind::flag) {
            call.set(field, std::int64_t{flags_.contains(field.name)});
        } else if (field.kind == Kind::number) {
            const auto given = numbers_.find(field.name);
            if (given != numbers_.end()) {
                call.set(field, given->second);
            } else if (!field.default_value.empty()) {
                call.set(field, std::stod(field.default_value));
            }
        } else if (const auto value = integer(field)) {
            call.set(field, *value);
        }
    }
}

}  // namespace jitney::cli
