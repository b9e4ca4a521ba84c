// Pieces of JSON that bodies of this room write by hand.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace jitney {

inline std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

// A list of what `write` makes of each value.
template <class Values, class Write>
std::string json_list(const Values& values, const Write& write) {
    std::string result = "[";
    for (const auto& value : values) {
        if (result.size() > 1) result += ',';
        result += write(value);
    }
    return result + ']';
}

inline std::string quoted_list(const std::vector<std::string>& texts) {
    return json_list(texts, quoted);
}

}  // namespace jitney
