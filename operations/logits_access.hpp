// What a LogitsFunction stands for, to the rest of this room.
#pragma once

#include <string>
#include <vector>

#include "jitney/logits.hpp"

namespace jitney {

// The member of Constants that the kernels call.
struct LogitsSource {
    std::string compiled;  // errors have the lines of what the caller gave
    std::string key;       // the same in whatever form the function was given
};

namespace detail {

struct LogitsRecord {
    struct Parameter {
        std::string type;  // "const float*"
        std::string name;
        LogitsValue::Kind kind = LogitsValue::Kind::none;
        int line = 0;  // of the file that declares it; 0: there is none
    };
    std::string text;  // lines end in '\n', and nothing blank stands at the ends
    int line = 1;      // of what the caller gave, where the text begins
    std::vector<Parameter> parameters;
    std::uint64_t digest = 0;
    LogitsSource source;
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

// Of a digest that a specialization has; 0 gives empty ones. Throws Error (invalid_argument), with
// the specialization's text, where this process has made no such function.
const LogitsSource& logits_source(std::uint64_t digest, const std::string& specialization);

}  // namespace jitney
