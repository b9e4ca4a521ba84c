// What a LogitsFunction stands for, to the rest of this room.
#pragma once

#include <string>
#include <vector>

#include "jitney/logits.hpp"

namespace jitney {

namespace detail {

struct LogitsRecord {
    struct Parameter {
        std::string type;  // "const float*"
        std::string name;
        LogitsValue::Kind kind = LogitsValue::Kind::none;
        int line = 0;  // of the file that declares it; 0: there is none
    };
    std::string text;
    std::vector<Parameter> parameters;
    std::uint64_t digest = 0;
    std::string source;  // the member of Constants that the kernels call
};

}  // namespace detail

struct LogitsAccess {
    static const detail::LogitsRecord* record(const LogitsFunction& function) noexcept {
        return function.record_;
    }
    static LogitsFunction of(const detail::LogitsRecord* record) noexcept {
        LogitsFunction function;
        function.record_ = record;
        return function;
    }
};

// Of a digest that a specialization has; 0 gives "". Throws Error (invalid_argument), with the
// specialization's text, where this process has made no such function.
const std::string& logits_source(std::uint64_t digest, const std::string& specialization);

}  // namespace jitney
