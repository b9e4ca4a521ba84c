#include "cli/logits_option.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>

#include "cli/errors.hpp"
#include "cli/file.hpp"

namespace jitney::cli {

namespace {

using Parameter = LogitsParameter;

template <class Number>
Number number_in(const Tensor& tensor, const Parameter& parameter, DType dtype) {
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

jitney_logits_value value_in(const Tensor& tensor, const Parameter& parameter) {
    jitney_logits_value value{};
    switch (parameter.kind) {
        case LogitsValue::Kind::fp32:
            value.fp32 = number_in<float>(tensor, parameter, DType::fp32);
            break;
        case LogitsValue::Kind::int32:
            value.int32 = number_in<std::int32_t>(tensor, parameter, DType::int32);
            break;
        case LogitsValue::Kind::int64:
            value.int64 = number_in<std::int64_t>(tensor, parameter, DType::int64);
            break;
        default:
            value.pointer = tensor.data;
    }
    return value;
}

}  // namespace jitney::cli
