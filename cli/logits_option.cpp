#include "cli/logits_option.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <span>

#include "cli/errors.hpp"
#include "cli/file.hpp"
#include "cli/run.hpp"
#include "operations/logits_access.hpp"

namespace jitney::cli {

namespace {

using Parameter = detail::LogitsRecord::Parameter;

std::span<const Parameter> parameters_of(const LogitsFunction& function) {
    const detail::LogitsRecord* record = LogitsAccess::record(function);
    if (record == nullptr) return {};
    return record->parameters;
}

template <class Number>
LogitsValue number_in(const Tensor& tensor, const Parameter& parameter, DType dtype) {
    if (tensor.dtype != dtype || tensor.elements() != 1) {
        refuse(fmt::format("the tensor {} is the value of '{} {}', and must be one {}",
                           parameter.name, parameter.type, parameter.name, name_of(dtype)));
    }
    Number number{};
    std::memcpy(&number, tensor.data, sizeof number);
    return number;
}

}  // namespace

LogitsFunction read_logits(const std::string& path) {
    constexpr std::uint64_t most = std::uint64_t{1} << 16;
    return LogitsFunction::from_source(read_text(path, most, "a logits function"));
}

void LogitsOption::add_to(CLI::App& command, const std::string& description) {
    command.add_option("--logits", file, description)->type_name("FILE");
}

std::vector<std::string> parameter_names(const LogitsFunction& function) {
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters_of(function))
        names.push_back(parameter.name);
    return names;
}

LogitsValues empty_values(const LogitsFunction& function) {
    LogitsValues values;
    std::size_t i = 0;
    for (const Parameter& parameter : parameters_of(function)) {
        LogitsValue& value = values[i++];
        switch (parameter.kind) {
            case LogitsValue::Kind::fp32:
                value = 0.0f;
                break;
            case LogitsValue::Kind::int32:
                value = std::int32_t{0};
                break;
            case LogitsValue::Kind::int64:
                value = 0LL;
                break;
            default:
                value = static_cast<const void*>(nullptr);
        }
    }
    return values;
}

LogitsValues values_in(Run& run, const LogitsFunction& function) {
    LogitsValues values;
    std::size_t i = 0;
    for (const Parameter& parameter : parameters_of(function)) {
        LogitsValue& value = values[i++];
        const Tensor& tensor = run.at(parameter.name);
        switch (parameter.kind) {
            case LogitsValue::Kind::fp32:
                value = number_in<float>(tensor, parameter, DType::fp32);
                break;
            case LogitsValue::Kind::int32:
                value = number_in<std::int32_t>(tensor, parameter, DType::int32);
                break;
            case LogitsValue::Kind::int64:
                value = number_in<long long>(tensor, parameter, DType::int64);
                break;
            default:
                value = static_cast<const void*>(run.input(parameter.name).data);
        }
    }
    return values;
}

}  // namespace jitney::cli
