// The checks of the text of a logits function, and of its parameters, that no compiler can do.
#pragma once

#include <string>
#include <string_view>

#include "jitney/logits.hpp"

namespace jitney::checks {

// Whether the text is statements, and not an expression. Throws Error, with the line, where the
// text can't be meant: brackets that do not match, comments and quotes that do not end, directives
// that have no place in it, statements without a return.
bool check_logits_text(std::string_view text);

struct ParsedParameter {
    std::string type;  // "const float*"
    std::string name;
    LogitsValue::Kind kind = LogitsValue::Kind::none;
};
// Parses a declaration such as "const float* slopes"; `line` of a file, or 0. The compiler tells
// whether the types and the name exist. Throws Error.
ParsedParameter parse_logits_parameter(std::string_view declaration, int line);

}  // namespace jitney::checks
