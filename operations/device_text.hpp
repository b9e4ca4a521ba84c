// CUDA C++ that a caller gives, as text: what can be told of it without a compiler. A kernel's key
// holds such a text, and equal texts have to be equal machine code, in every process and on every
// day.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitney::checks {

// Whether the character is one of a name or a number.
inline bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The token that pastes names together, in both of its spellings.
inline constexpr std::string_view kPastes[] = {"##", "%:%:"};

// Whether a word stands in the text, as a whole.
bool has_word(std::string_view text, std::string_view word);

// Lines that end in "\r\n" end in '\n' instead.
std::string with_plain_newlines(std::string_view text);

// The text as the preprocessor joins its lines, trigraphs of another --std counted in.
std::string spliced(std::string_view text);

// The first name in a spliced text whose meaning hangs on the day, or on the machine's files;
// empty where there is none.
std::string_view name_of_day_or_file(std::string_view text);

// The first such name that pasting tokens could make of the words of these spliced texts, comments
// and quotes aside; empty where there is none, or where no token is pasted.
std::string_view name_pasted(const std::vector<std::string>& texts);

}  // namespace jitney::checks
