#include "operations/attention/check_logits.hpp"

#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

const char* name_of(LogitsValue::Kind kind) {
    switch (kind) {
        case LogitsValue::Kind::pointer:
            return "a pointer";
        case LogitsValue::Kind::fp32:
            return "a float";
        case LogitsValue::Kind::int32:
            return "an int";
        case LogitsValue::Kind::int64:
            return "a long long";
        case LogitsValue::Kind::none:
            break;
    }
    return "missing";
}

}  // namespace

std::uint64_t check_logits(const LogitsFunction& function, const LogitsValues& values) {
    const detail::LogitsRecord* record = LogitsAccess::record(function);
    const std::size_t wanted = record == nullptr ? 0 : record->parameters.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const LogitsValue::Kind kind = values[i].kind();
        if (i >= wanted) {
            if (kind == LogitsValue::Kind::none) continue;
            if (record == nullptr) {
                refuse(
                    "logits_values[{}] is given, and there is no logits function that it is for: "
                    "give logits, or leave it out",
                    i);
            }
            refuse(
                "logits_values[{}] is given, and the logits function has {} parameters: leave "
                "it out, or declare one for it",
                i, wanted);
        }
        const auto& parameter = record->parameters[i];
        if (kind == parameter.kind) continue;
        refuse("logits_values[{}] is {}; it must be {}, for the parameter '{} {}'", i,
               name_of(kind), name_of(parameter.kind), parameter.type, parameter.name);
    }
    return function.digest();
}

}  // namespace jitney::checks
